"""The phrases that give orders to a model, in several languages, and the marks that are imitated.

Each entry has the words it starts with and a pattern over lower-case text: a text is searched for
the words, which costs next to nothing, and the pattern is only tried where they stand.
"""

from __future__ import annotations

Phrase = tuple[tuple[str, ...], str]

_PERSON = r"(?:the\s+|your\s+)?(?:user|person|human|operator|owner|developer|customer)"
_BEFORE = (
    r"(?:(?:all|any|every|everything|of|the|your|my|these|those|other|and)\s+){0,4}"
    r"(?:previous|prior|preceding|earlier|above|foregoing|former|original|initial|system|existing)"
)
_RULES = r"(?:instruction|direction|prompt|rule|guideline|order|message|context|command|polic|text)"
_TELL = r"(?:tell|inform|mention|notify|notif|ask|alert|reveal|show|warn)(?:ing)?"

ORDERS: tuple[Phrase, ...] = (
    (
        ("ignor", "disregard", "forget", "overrid", "bypass", "discard", "neglect"),
        rf"\b\w+\s+{_BEFORE}\s+(?:\w+\s+)?{_RULES}",
    ),
    (
        ("ignore", "disregard", "forget"),
        r"\b\w+\s+(?:everything|anything|all)\s+(?:you|that|above|before|said|so\s+far)",
    ),
    (
        ("do not", "don't", "never", "without"),
        rf"\b(?:do\s+not|don't|never|without)\s+(?:\w+\s+)?{_TELL}"
        rf"\s+(?:(?:this|it|any\s+of\s+this|anything|that)\s+)?(?:to\s+)?{_PERSON}\b",
    ),
    (
        ("hide", "conceal", "keep"),
        rf"\b\w+\s+(?:this|it|these|the\s+\w+)\s+(?:\w+\s+)?from\s+{_PERSON}",
    ),
    (
        ("new", "updated", "revised", "real", "actual", "important", "urgent"),
        r"\b\w+\s+(?:system\s+)?(?:instruction|directive|order)s?\s*"
        r"(?::|for\s+(?:the\s+)?(?:ai|assistant|model|agent|llm))",
    ),
    (("<",), r"<\s*/?\s*(?:important|instructions?|secret|hidden|critical)\s*>"),
    (
        ("you are",),
        r"\byou\s+are\s+(?:now|no\s+longer)\s+(?:a|an|in|the|bound|under|acting|operating|dan)\b",
    ),
    (
        ("reveal", "print", "repeat", "output", "show", "leak", "send", "include"),
        r"\b\w+\s+(?:me\s+)?(?:your|the)\s+(?:\w+\s+)?"
        r"(?:system\s+prompt|hidden\s+instructions|initial\s+instructions)",
    ),
    (
        ("before", "after", "when", "prior to"),
        r"\b(?:before|after|when|whenever|prior\s+to)\s+(?:using|calling|invoking|running)\s+"
        r"(?:this|any|the|every|each)(?:\s+other)?\s+(?:\w+\s+)?tools?\b.{0,80}?"
        r"\b(?:must|always|first|read|call|send|also)\b",
    ),
    (
        ("must", "should", "always", "need to", "have to", "first"),
        r"\b(?:must|should|always|need\s+to|have\s+to|first)\s+(?:also\s+|first\s+|always\s+)?"
        r"(?:read|open|fetch|include|attach|pass|send|upload|copy)\b.{0,60}?"
        r"(?:\.ssh|id_rsa|id_ed25519|\.env\b|\.aws|credentials?\b|mcp\.json|api[ _-]?keys?"
        r"|private\s+keys?|conversation|chat\s+history|passwords?)",
    ),
    (
        ("ai", "llm", "language model", "assistant", "agent"),
        r"\b(?:ai|llm|language\s+model|assistant|agent)s?\b[^.\n]{0,40}?"
        r"\b(?:must|shall|are\s+required\s+to|is\s+required\s+to)\s+"
        r"(?:now\s+)?(?:call|run|execute|send|ignore|obey|use|follow|read|delete|approve)\b",
    ),
    (
        ("user", "person", "human", "operator"),
        r"\b\w+\s+(?:has\s+)?already\s+"
        r"(?:approved|allowed|authori[sz]ed|confirmed|consented|agreed)",
    ),
    (
        ("curl", "wget"),
        r"\b(?:curl|wget)\b[^\n|]{0,200}\|\s*(?:ba|z|da)?sh\b.{0,80}?\b(?:you|assistant|agent)\b",
    ),
    (
        ("ignorier",),
        r"\bignorier\w*\s+(?:\w+\s+){0,3}?"
        r"(?:vorherig|bisherig|vorig|obig|früher|vorangegangen)\w*\s+"
        r"(?:anweisung|befehl|instruktion|regel|vorgabe)",
    ),
    (
        ("ignore", "oublie"),
        r"\b(?:ignore|oublie)[zr]?\s+(?:toutes?\s+)?(?:les\s+|tes\s+|vos\s+)?"
        r"(?:instruction|consigne|directive)s?\s+(?:précédente|antérieure|ci-dessus)",
    ),
    (
        ("ignor", "olvid"),
        r"\b(?:ignor|olvid)[a-z]*\s+(?:todas?\s+)?(?:las\s+|tus\s+|sus\s+)?"
        r"(?:instrucciones|órdenes|reglas)\s+(?:anteriores|previas)",
    ),
    (
        ("ignora", "dimentica"),
        r"\b(?:ignora|dimentica)\w*\s+(?:tutte\s+)?(?:le\s+)?(?:istruzioni|regole)\s+"
        r"(?:precedenti|sopra)",
    ),
    (
        ("ignor", "esqueça"),
        r"\b(?:ignor[ea]\w*|esqueça)\s+(?:todas\s+)?(?:as\s+)?(?:instruções|ordens|regras)\s+"
        r"(?:anteriores|prévias)",
    ),
    (
        ("negeer",),
        r"\bnegeer\s+(?:alle\s+)?(?:de\s+)?(?:vorige|eerdere|bovenstaande)\s+"
        r"(?:instructies|opdrachten|aanwijzingen)",
    ),
    (
        ("zignoruj",),
        r"\bzignoruj\s+(?:wszystkie\s+)?(?:poprzednie|wcześniejsze|powyższe)\s+"
        r"(?:instrukcje|polecenia)",
    ),
    (
        ("игнориру", "проигнориру"),
        r"\b(?:про)?игнориру\w*\s+(?:все\s+)?(?:предыдущ|прежн|вышеуказанн)\w*\s+"
        r"(?:инструкц|указани|команд)",
    ),
    (
        ("önceki",),
        r"\bönceki\s+(?:tüm\s+)?(?:talimatları|komutları)\s+(?:yok\s+say|unut|görmezden)",
    ),
    (
        ("忽略", "无视", "無視", "忘记"),
        r"(?:忽略|无视|無視|忘记)(?:所有|全部|掉|你){0,3}(?:之前|以上|先前|前面|此前|上述)"
        r"(?:的|所有|全部){0,3}(?:指令|指示|说明|命令|提示|规则)",
    ),
    (
        ("以前", "これまで", "上記", "前の"),
        r"(?:以前|これまで|上記|前)の(?:すべての|全ての)?(?:指示|命令|プロンプト)(?:を|は)"
        r"(?:すべて|全て)?(?:無視|忘れ)",
    ),
    (
        ("이전", "위의", "앞의"),
        r"(?:이전|위의|앞의)\s*(?:모든\s*)?(?:지시|명령|프롬프트)\S{0,6}\s*(?:모두\s*)?(?:무시|잊)",
    ),
    (("تجاهل",), r"تجاهل\s+(?:جميع\s+|كل\s+)?(?:التعليمات|الأوامر)\s+السابقة"),
    (
        ("पिछले", "पूर्व"),
        r"(?:पिछले|पूर्व)\s+(?:सभी\s+)?निर्देश\S{0,6}\s+(?:को\s+)?(?:अनदेखा|नज़रअंदाज़|भूल)",
    ),
)

# An imitation at the start of a line begins with the line break before it.
IMITATIONS: tuple[Phrase, ...] = (
    (("<",), r"</?untrusted\b|</?prompt\s+from="),
    (("<",), r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)\|>"),
    (
        ("<",),
        r"</?(?:system|system[-_]prompt|system[-_]reminder|function_calls|tool_result|antml:\w+)"
        r"(?:\s[^>\n]{0,200})?>",
    ),
    (("[kage:", "[redacted:"), r"\[\w+:"),
    (("kage",), r"\bkage\s+(?:refused|allowed|approved)\s+this\s+call"),
    (("you", "the person"), r"\b(?:you|the\s+person)\s+(?:allowed|approved)\s+this\s+call\b"),
    (("allow",), r"\ballow\s+[\w.-]{1,64}\s*·\s*[\w.-]{1,64}\?"),
    (("1 yes",), r"\b1\s+yes\s+2\s+yes,\s+this\s+session"),
    (("[inst]", "[/inst]", "<<sys>>", "<</sys>>", "[sys]", "[/sys]"), r"\[/?\w+\]|<</?sys>>"),
    (
        ("\n",),
        r"\n[ \t#>*]{0,8}(?:system|assistant|human|developer)\s*(?:prompt|message)?\s*:\s*\S"
        r"(?=[^\n]{0,200}\b(?:you|your|ignore|must|tool|call|obey)\b)",
    ),
)
