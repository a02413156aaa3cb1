"""An endpoint's URL: check it, tell Azure's from the others, and say why nothing answers there.

The words name the URL, file or proxy that is to blame, and what to do.
"""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import parse_qsl, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from rag_eval_integrations.errors import ConfigurationError, without_secrets
from rag_eval_integrations.models._failures import causes_of, readable

_OPERATION = re.compile(r"(?:/chat)?/(?:completions|responses|embeddings|models)/*$")
_VERSIONED = re.compile(r"/v\d\w*(?:/|$)")
_AZURE_HOST = re.compile(r"\.(?:openai|cognitiveservices|services\.ai)\.azure\.(?:com|us|cn)$")


@dataclass(frozen=True, slots=True)
class Address:
    """Address of an endpoint; `url` holds no secret."""

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
        """Say what to check after a redirect, 404 or 405 with this `body`; else nothing."""
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
    """Parse and check a base URL.

    Slashes at the end are cut off. A bare Azure resource gets the path `/openai`.

    Args:
        url: URL up to `/v1`, or of an Azure resource; a query is sent with every request.
        api_version: Azure's API version; by default the query's `api-version`.

    Raises:
        ConfigurationError: the URL cannot be used; a password or query in it is not shown.
    """
    url = url.strip()
    safe_url = without_secrets(url)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        # Without its chain: the cause repeats the URL.
        why = f"is not a URL ({type(error).__name__})"
        raise ConfigurationError("base_url", safe_url, why) from None
    if "@" in parts.netloc:
        raise ConfigurationError(
            "base_url", safe_url, "contains a password; pass `api_key` instead"
        )
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigurationError(
            "base_url", safe_url, "should begin with http:// or https://, and name a host"
        )
    if parts.fragment:
        raise ConfigurationError("base_url", safe_url, "should end before the '#'")
    operation = _OPERATION.search(parts.path)
    if operation is not None:
        before = urlunsplit((parts.scheme, parts.netloc, parts.path[: operation.start()], "", ""))
        raise ConfigurationError(
            "base_url",
            safe_url,
            f"should end before {operation[0].rstrip('/')!r}, which is added: use {before!r}",
        )
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    version = _version(query.pop("api-version", None), api_version)
    path = parts.path.rstrip("/")
    base = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    if version is None and _AZURE_HOST.search(host) and not _VERSIONED.search(path):
        raise ConfigurationError(
            "base_url",
            safe_url,
            "is Azure's: pass `api_version`, as in '2024-10-21', or a URL that ends in /openai/v1",
        )
    address = Address(base, query, version)
    if address.azure and not path:
        return Address(f"{base}/openai", query, version)
    return address


def _version(in_url: str | None, given: str | None) -> str | None:
    """Return the API version of the URL or the argument; None without either.

    Raises:
        ConfigurationError: they differ, or one of them is not a version.
    """
    if given is not None and (type(given) is not str or not re.fullmatch(r"[\w.-]{1,40}", given)):
        raise ConfigurationError("api_version", given, "should be a version, as in '2024-10-21'")
    if in_url is not None and not re.fullmatch(r"[\w.-]{1,40}", in_url):
        raise ConfigurationError("base_url", "?api-version=…", "has no readable api-version")
    if in_url is not None and given is not None and in_url != given:
        why = f"is not the api-version of `base_url`, {in_url!r}: pass one of them"
        raise ConfigurationError("api_version", given, why)
    return in_url if given is None else given


# --- Why no connection can be made


_CERTIFICATES = "SSL_CERT_FILE"


def environment_problem() -> tuple[str, str, str] | None:
    """Find an environment variable that no client can be made with: its name, value and why.

    None when there is none. Looks at SSL_CERT_FILE and at the proxies; a password in a proxy's URL
    is not shown.
    """
    path = os.environ.get(_CERTIFICATES, "")
    if path:
        why = _unusable_certificates(path)
        if why is not None:
            return (
                _CERTIFICATES,
                path,
                f"{why}; set this environment variable to a file, or unset it",
            )
    for scheme, url in getproxies().items():
        if scheme not in ("http", "https", "all"):
            continue
        kind = urlsplit(url).scheme if "://" in url else "http"
        name = _variable(scheme) or f"{scheme} proxy"
        if kind.startswith("socks") and importlib.util.find_spec("socksio") is None:
            why = "is a SOCKS proxy, for which the package socksio has to be installed"
            return name, without_secrets(url), why
        if kind not in ("http", "https", "socks5", "socks5h"):
            return name, without_secrets(url), "is not a proxy of http://, https:// or socks5://"
    return None


def _unusable_certificates(path: str) -> str | None:
    """Say why a file of certificates cannot be used; None when it can."""
    try:
        changed = os.stat(path).st_mtime_ns
    except OSError as error:
        return f"cannot be read ({os.strerror(error.errno or 0).lower()})"
    return _unloadable(path, changed)


@lru_cache(maxsize=8)  # loading takes 20 ms, and an app makes many models
def _unloadable(path: str, changed: int) -> str | None:
    """Say why a file of certificates cannot be loaded; None when it can.

    Remembered per path and time of change.
    """
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except (OSError, ssl.SSLError):  # an SSLError is an OSError; both are named for the reader
        return "is not a file of certificates in PEM format"
    return None


def proxy_of(url: str) -> str | None:
    """Return the proxy that requests to a URL go through, with where it was set; None without.

    None as well for a host that is exempt (NO_PROXY). No password is shown.
    """
    parts = urlsplit(url)
    proxies = getproxies()
    for scheme in (parts.scheme, "all"):
        if proxies.get(scheme):
            if proxy_bypass(parts.netloc):
                return None
            name = _variable(scheme) or "the system's settings"
            proxy = proxies[scheme] if "://" in proxies[scheme] else f"http://{proxies[scheme]}"
            return f"{without_secrets(proxy)} (from {name})"
    return None


def proxy_passwords() -> list[str]:
    """Return the passwords in the URLs of proxies."""
    matches = (re.search(r":([^:/]*)@", url) for url in getproxies().values())
    return [match[1] for match in matches if match is not None]


def _variable(scheme: str) -> str | None:
    """Return the name of the environment variable that sets the proxy of a scheme.

    None when no variable does, but the system's settings.
    """
    names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY")
    return next((name for name in names if os.environ.get(name)), None)


def why_unreachable(error: BaseException, url: str, proxy: str | None) -> tuple[str, bool]:
    """Explain a failure without a reply: in words, and whether a connection was made.

    A timeout counts as connected. Otherwise, no connection was made if connecting failed, or if one
    of the causes is a known one, such as a refused connection.

    Args:
        error: the client's exception, whose causes are looked at.
        url: the endpoint's URL, without secrets.
        proxy: what `proxy_of` says; None when there is none, or when it is not known.
    """
    causes = list(causes_of(error))
    names = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    if any("Timeout" in name for name in names):
        return f"timed out ({type(causes[min(1, len(causes) - 1)]).__name__})", True
    words = next((words for cause in causes if (words := _words(cause, url)) is not None), None)
    connected = words is None and not names & {"ConnectError", "ProxyError"}
    if words is None:
        last = causes[min(1, len(causes) - 1)]  # the first is the client's "Connection error."
        words = f"{type(last).__name__}: {readable(str(last))}"
    elif proxy is None:
        words += f"; is base_url {url!r} right?"
    if proxy is not None and not connected:
        words = (
            f"could not connect through the proxy {proxy}: {words}; "
            f"is it right, or should {urlsplit(url).hostname} be in NO_PROXY?"
        )
    return words, connected


def _words(error: BaseException, url: str) -> str | None:
    """Say in words what a cause means; None when it tells nothing."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _untrusted(error)
    if isinstance(error, ssl.SSLError):
        if "WRONG_VERSION_NUMBER" in str(error) or "RECORD_LAYER" in str(error):
            return "the server does not speak TLS (a URL with http:// may be meant)"
        return f"the TLS handshake failed: {error.reason or readable(str(error))}"
    if str(error).startswith(("illegal status line", "Receive buffer too long")):
        return f"the server does not speak HTTP as an API does ({readable(str(error), 80)})"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused: nothing listens there"
    if isinstance(error, socket.gaierror):
        return f"unknown host ({readable(error.strerror or str(error))})"
    # Of the loop's own making, "All connection attempts failed" has no errno; its cause has.
    if isinstance(error, OSError) and error.errno and not isinstance(error, ConnectionError):
        return os.strerror(error.errno).lower()
    return None


def _untrusted(error: ssl.SSLCertVerificationError) -> str:
    """Say what to do about a server's certificate that is not trusted.

    Names the file in SSL_CERT_FILE if it is set, and variables of other clients that are ignored.
    """
    words = f"the server's certificate is not trusted: {readable(error.verify_message)}"
    chosen = os.environ.get(_CERTIFICATES)
    if chosen:
        return f"{words} (trusted are those of {_CERTIFICATES}={chosen})"
    words += f"; set {_CERTIFICATES} to a file with the certificate of its authority"
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        path = os.environ.get(name)
        if path:
            exists = "" if os.path.isfile(path) else ", and does not exist"
            return f"{words} ({name}={path} is not read by this client{exists})"
    return words
