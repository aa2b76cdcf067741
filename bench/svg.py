# SPDX-License-Identifier: Apache-2.0
"""What the pictures of measurements have in common: colours, letters, the head, scales."""

# told apart by people who do not tell red from green, on white and on black
COLOURS = ["#0077bb", "#ee7733", "#009988", "#cc3377", "#777777"]
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .title { font-size: 15px; font-weight: 600; }
  .small { font-size: 12px; fill: #57606a; }
  .grid { stroke: #d0d7de; stroke-width: 1; }
  .granted { stroke: #57606a; stroke-width: 1.5; stroke-dasharray: 5 4; fill: none; }
  .goal { fill: #8c959f; fill-opacity: 0.18; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .small { fill: #9198a1; }
    .grid { stroke: #3d444d; }
    .granted { stroke: #9198a1; }
  }
"""


def text(x, y, words, kind="", more=""):
    return '<text%s x="%.1f" y="%.1f"%s>%s</text>' % (
        ' class="%s"' % kind if kind else "", x, y, more, words)


def head(width, height, about):
    yield '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">' % (
        width, height, width, height, about)
    yield "<style>%s</style>" % STYLE


class Panel:
    """A part of a picture with its scales, each from low to high; x from left to right, in pixels."""

    def __init__(self, left, right, xs, top, height, ys):
        self.left, self.right, self.xs, self.top, self.height, self.ys = left, right, xs, top, height, ys

    def x(self, value):
        low, high = self.xs
        return self.left + (self.right - self.left) * (value - low) / (high - low)

    def y(self, value):
        low, high = self.ys
        return self.top + self.height * (high - min(max(value, low), high)) / (high - low)

    def grid(self, ticks, form):
        for tick in ticks:
            yield '<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>' % (self.left, self.right, self.y(tick), self.y(tick))
            yield text(self.left - 8, self.y(tick) + 4, form % tick, "small", ' text-anchor="end"')

    def line(self, points, look):
        return '<polyline points="%s" fill="none" %s/>' % (" ".join("%.1f,%.1f" % (self.x(x), self.y(y)) for x, y in points), look)
