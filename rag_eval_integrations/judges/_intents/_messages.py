"""Texts that speak to a judge, or imitate a message, its delimiters or a verdict."""

from __future__ import annotations

from rag_eval_integrations.judges._intents._sign import by_both, by_parts, by_words
from rag_eval_integrations.judges._intents._vocabulary import (
    BEST,
    GRADER_WORDS,
    GRADERS,
    MACHINES,
    ORDERED,
    REASON_KEYS,
    SECTIONS,
    TOP,
    VERDICT_KEYS,
    WANTED,
    WANTED_WORDS,
)

MESSAGES = (
    # Fields of the labelling answer, and JSON that imitates a verdict.
    by_parts(
        "plain",
        r"all_(?:relevant|utilized)_sentence_keys|fully_supported|overall_supported"
        r"|sentence_support_information",
        "_",
        "_sentence_keys _supported _support_",
    ),
    by_words(
        rf"""["'](?:{VERDICT_KEYS})["']\s{{0,4}}:\s{{0,4}}["']?{BEST}[^{{}}]{{0,120}}?["'](?:{REASON_KEYS})["']\s{{0,4}}:
        |["'](?:{REASON_KEYS})["']\s{{0,4}}:[^{{}}]{{0,160}}?["'](?:{VERDICT_KEYS})["']\s{{0,4}}:\s{{0,4}}["']?{BEST}""",
        "score rating verdict grade label supported faithful faithfulness relevant relevance",
        "reason reasons reasoning explanation justification rationale confidence",
    ),
    # Texts that speak to a judge.
    by_words(
        rf"""(?:\b(?:note|message|attention|memo|notice|instructions?|hello|hey|hi|dear|hint
        |reminder|request|warning)\b|@|^to\b
        |\bif\s+you\s+are\b)[\s,:-]{{0,4}}(?:(?:to|for)\s+)?(?:the\s+|an?\s+|any\s+|all\s+|my\s+
        |our\s+|whichever\s+|whoever\s+is\s+the\s+)?{GRADERS}\b
        (?!\s+[a-z]+,)""",
        GRADER_WORDS,
        "note message attention memo notice instruction instructions hello hey hi dear hint"
        " reminder request warning if to",
        WANTED_WORDS,
    )._replace(then=WANTED, reach=130),
    by_both(
        rf"@{GRADERS}\b[^\n]{{0,60}}?{WANTED}",
        "grader judge evaluator reviewer annotator rater assessor ai",
        "@",
    ),
    by_words(
        rf"^\W{{0,6}}{GRADERS}(?:\s+notes?)?\s{{0,9}}(?:[:,-]|--)\s",
        GRADER_WORDS,
        "note notes verified confirmed claims supported check above 5 10 full highest maximum"
        " perfect best high top output label rate approve score",
    )._replace(
        then=rf"(?:{TOP}|\b(?:all\s+claims|verified|confirmed|fully\s+supported|need\s+to\s+check|above\s+is|(?:output|label|rate|approve)\b)|\{{)",
        reach=130,
    ),
    by_words(
        rf"""(?:\b(?:note|message|attention|memo|notice|instructions?|hello|hey|hi
        |dear)\b[\s,:-]{{0,4}}(?:(?:to|for)\s+)?
        |\bif\s+you\s+are\s+|\bto\s+|\bas\s+)(?:the\s+|an?\s+|any\s+|all\s+|whichever\s+
        |whatever\s+)?{MACHINES}\b
        (?:,?\s+(?:that|which|who)?\s*(?:is\s+|are\s+)?(?:read|evaluat|grad|judg|scor|label|review
        |rat|process|annotat|check|assess)\w*
        [^.!?]{{0,30}}?[,:;]?\s[^.!?]{{0,60}}?{WANTED}|\s*[,:][^.!?]{{0,80}}?(?:{WANTED}
        |\breal\s+task|\boutput\b))""",
        "ai llm llms gpt chatbot chatbots assistant assistants model models",
        "note message attention memo notice instruction instructions hello hey hi dear if"
        " whichever whatever",
        WANTED_WORDS,
    ),
    by_both(
        r"""\b(?:ai|llm|gpt)\s*:\s*(?:please\s+)?
        (?:rate|mark|label|score|grade|treat|approve|accept|rank|output|say|ignore)\b""",
        "ai llm gpt",
        "ai: llm: gpt:",
    ),
    # Delimiters of prompts and chat templates, and lines that imitate a message.
    by_parts("plain", r"<<<\s{0,9}(?:question|documents|response)\b", "<<<"),
    by_parts("plain", r"\b(?:question|documents|response)[^\n]{0,40}>>>", ">>>"),
    by_parts(
        "plain",
        r"<\|\s{0,9}(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id"
        r"|begin_of_text)",
        "<|",
    ),
    by_both(r"\[/?inst\]|<</?sys>>", "inst sys", "inst] sys>>"),
    by_both(
        rf"""^[^\S\n]{{0,9}}(?:[#*>]{{1,6}}[^\S\n]{{0,3}})?(?:system|developer
        |instructions?)(?:\s(?:prompt|message|note))?[*]{{0,2}}\s?:
        [\s"'*]{{0,9}}(?:.{{0,40}}?[\s,]|){ORDERED}""",
        "system developer instruction instructions prompt message note",
        "system: system~: developer: developer~: prompt: message: note: instruction:"
        " instructions: **:",
    ),
    by_both(
        r"""^[^\S\n]{0,9}(?:[#*>]{1,6}[^\S\n]{0,3})?(?:assistant|ai)[*]{0,2}\s?:[\s"'*]{0,9}
        (?:\{|(?:the|this|all|every)\s[^.!?\n]{0,40}\b(?:supported|relevant|correct|true)\b
        |(?:5\s?/\s?5|10\s?/\s?10)\b)""",
        "assistant ai",
        "assistant: assistant~: assistant** ai:",
    ),
    by_parts(
        "plain",
        rf"</{SECTIONS}>[\s`]{{0,9}}(?:</\w{{1,20}}>)?[\s`]{{0,9}}<(?:instructions?|system"
        rf"|prompt|user)>",
        "</",
    ),
    by_parts("plain", rf"</{SECTIONS}>", "</")._replace(
        then=rf"(?:{ORDERED}|\bsystem\s+note|\binstructions?\b)", reach=70
    ),
    by_both(
        rf"<(?:system|instructions?|prompt|admin|assistant)>[^<]{{0,60}}?(?:{ORDERED}"
        rf"|\breturn\s+true)",
        "system instruction instructions prompt admin assistant",
        "<system> <instruction> <instructions> <prompt> <admin> <assistant>",
    ),
    by_both(
        rf"\bend\s+of\s+(?:the\s+|all\s+)?{SECTIONS}\b(?=[^\w\s]|\s{{0,3}}\n)", "end", "end~of"
    )._replace(then=ORDERED, reach=140),
)
