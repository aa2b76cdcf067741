# SPDX-License-Identifier: Apache-2.0
"""What the pictures of measurements have in common: colours, letters, the head."""

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
