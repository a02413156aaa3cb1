"""Check an endpoint's URL, and tell Azure's from the others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from rag_eval_integrations.errors import ConfigurationError, without_secrets

_OPERATION = re.compile(r"(?:/chat)?/(?:completions|responses|embeddings|models)/*$")
_VERSIONED = re.compile(r"/v\d\w*(?:/|$)")
_AZURE_HOST = re.compile(r"\.(?:openai|cognitiveservices)\.azure\.(?:com|us|cn)$")


@dataclass(frozen=True, slots=True)
class Address:
    """An endpoint's address, without anything that may be a secret in `url`."""

    url: str
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request; its values may be secrets."""
    api_version: str | None = None

    @property
    def azure(self) -> bool:
        """Whether requests take Azure's form, with the deployment in the path."""
        return self.api_version is not None and not self.versioned

    @property
    def versioned(self) -> bool:
        """Whether the path has a version, such as `/v1`."""
        return bool(_VERSIONED.search(urlsplit(self.url).path))

    def hint(self, status: int, body: str) -> str:
        """Say what to check after a redirect, 404 or 405 with `said` in its body; else nothing."""
        if 300 <= status < 400:
            return "; should base_url be another one?"
        if status not in (404, 405):
            return ""
        if self.azure:
            return (
                f"; is there such a deployment at {self.url}, for api-version {self.api_version}?"
            )
        if self.versioned:
            return "" if _MODEL.search(body) else f"; POST {self.url}/chat/completions was asked"
        return (
            f"; POST {self.url}/chat/completions was asked: should base_url end in /v1, as in "
            f"{self.url}/v1?"
        )


_MODEL = re.compile(r"\bmodel\b", re.IGNORECASE)


def address_of(url: str, api_version: str | None = None) -> Address:
    """Read a URL as it is given by users.

    Args:
        url: URL up to `/v1`, or of an Azure resource; a query is sent with every request.
        api_version: Azure's API version; by default the query's `api-version`.

    Raises:
        ConfigurationError: the URL cannot be used; a password or query in it is not shown.
    """
    url = url.strip()
    shown = without_secrets(url)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        # Without its chain: the cause repeats the URL.
        why = f"is not a URL ({type(error).__name__})"
        raise ConfigurationError("base_url", shown, why) from None
    if "@" in parts.netloc:
        raise ConfigurationError("base_url", shown, "contains a password; pass `api_key` instead")
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigurationError(
            "base_url", shown, "should begin with http:// or https://, and name a host"
        )
    if parts.fragment:
        raise ConfigurationError("base_url", shown, "should end before the '#'")
    operation = _OPERATION.search(parts.path)
    if operation is not None:
        before = urlunsplit((parts.scheme, parts.netloc, parts.path[: operation.start()], "", ""))
        raise ConfigurationError(
            "base_url", shown,
            f"should end before {operation[0].rstrip('/')!r}, which is added: use {before!r}",
        )  # fmt: skip
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    version = _version(query.pop("api-version", None), api_version)
    path = parts.path.rstrip("/")
    plain = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    if version is None and _AZURE_HOST.search(host) and not _VERSIONED.search(path):
        raise ConfigurationError(
            "base_url", shown,
            "is Azure's: pass `api_version`, as in '2024-10-21', or a URL that ends in /openai/v1",
        )  # fmt: skip
    address = Address(plain, query, version)
    if address.azure and not path:
        return Address(f"{plain}/openai", query, version)
    return address


def _version(in_url: str | None, given: str | None) -> str | None:
    if given is not None and (type(given) is not str or not re.fullmatch(r"[\w.-]{1,40}", given)):
        raise ConfigurationError("api_version", given, "should be a version, as in '2024-10-21'")
    if in_url is not None and not re.fullmatch(r"[\w.-]{1,40}", in_url):
        raise ConfigurationError("base_url", "?api-version=…", "has no readable api-version")
    if in_url is not None and given is not None and in_url != given:
        why = f"is not the api-version of `base_url`, {in_url!r}: pass one of them"
        raise ConfigurationError("api_version", given, why)
    return in_url if given is None else given
