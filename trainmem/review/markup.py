"""The little Markdown of the texts, as HTML and as plain text."""

import html
import re


def as_html(text: str) -> str:
    """Bold, italic, code and paragraphs as HTML.

    >>> as_html("a *pair* of `a < b`")
    'a <i>pair</i> of <code>a &lt; b</code>'
    """
    text = html.escape(text, quote=False)
    text = re.sub(r"`(.+?)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    return re.sub(r"\*(.+?)\*", r"<i>\1</i>", text).replace("\n\n", "<br>")


def as_text(text: str) -> str:
    """Without the marks.

    >>> as_text("a *pair*")
    'a pair'
    """
    return re.sub(r"[`*]", "", text)
