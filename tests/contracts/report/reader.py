"""Reads the page of a report as a parser does."""

from html.parser import HTMLParser

VOID = {"br", "meta"}


def page(report):
    return report._repr_mimebundle_()["text/html"]


class Reader(HTMLParser):
    """Refuses what is not closed, and keeps the cells of each table."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tables, self.words = [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.tables.append([])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["td"]:
            self.tables[-1].append(data)
        if "style" not in self.open:
            self.words.append(data)
