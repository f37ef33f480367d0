"""Draws curves as SVG."""

import math
from xml.sax.saxutils import escape

import doc

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 344, 84, 20, 72, 54
PADDING = 34  # between the axes and the outer points, for their values
CLOSE = 48  # the distance at which two values would overlap
STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #24292f; }
.title { font-size: 14px; font-weight: 600; } .middle { text-anchor: middle; } .end { text-anchor: end; }
.back { fill: #f6f8fa; }
.value { text-anchor: middle; paint-order: stroke; stroke: #f6f8fa; stroke-width: 3px; }
.grid { stroke: #d0d7de; } .axis { stroke: #6e7781; } .line { fill: none; stroke-width: 2; }
.first { stroke: #00695c; fill: #00695c; } .second { stroke: #a04000; fill: #f6f8fa; stroke-dasharray: 5 3; }
circle { stroke-width: 2; stroke-dasharray: none !important; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .value { stroke: #161b22; } .back { fill: #161b22; } .grid { stroke: #30363d; } .axis { stroke: #8b949e; }
.first { stroke: #4db6ac; fill: #4db6ac; } .second { stroke: #ffb37a; fill: #161b22; }
}"""


def scale(low, high, start, end, log):
    """Returns the function from a value to its place between two coordinates."""
    of = math.log if log else float
    return lambda value: start + (end - start) * (of(value) - of(low)) / (of(high) - of(low))


def ticks(values, log):
    """Returns round values around these ones, from 0 unless the axis is logarithmic."""
    round_values = [digit * 10.0**power for power in range(-9, 12) for digit in (1, 2, 5)]
    if not log:
        step = next(one for one in round_values if max(values) / one <= 5)
        return [step * n for n in range(math.ceil(max(values) / step) + 1)]
    for chosen in (round_values, round_values[::3]):
        low = max(one for one in chosen if one <= min(values))
        high = min(one for one in chosen if one >= max(values) and one > low)
        found = [one for one in chosen if low <= one <= high]
        if len(found) <= 7:
            break
    return found


def plain(value):
    """Formats a round value."""
    return f"{value:,.10g}"


def draw(title, x_name, y_name, series, log_x=False, log_y=False, x_form=plain):
    """Returns the picture of one or two series: pairs of a name and a list of points. Each point has its value."""
    xs = sorted({x for _, points in series for x, _ in points})
    marks = ticks([y for _, points in series for _, y in points], log_y)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    across = scale(xs[0], xs[-1], LEFT + PADDING, right - PADDING, log_x)
    # The values of points on the lowest line need room above the axis; 0 is on the axis.
    up = scale(marks[0], marks[-1], bottom - (20 if log_y else 0), TOP, log_y)
    parts, values = [], []

    def text(x, y, words, kind="middle"):
        # Values are above all lines.
        (values if kind == "value" else parts).append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>')

    def line(x1, y1, x2, y2, kind):
        parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>')

    text(14, 22, title, "title")
    text(14, 44, y_name, "")
    text((LEFT + right) / 2, HEIGHT - 12, x_name)
    for mark in marks:
        line(LEFT, up(mark), right, up(mark), "grid")
        text(LEFT - 8, up(mark) + 4, plain(mark), "end")
    line(LEFT, bottom, right, bottom, "axis")
    for x in xs:
        line(across(x), bottom, across(x), bottom + 5, "axis")
        text(across(x), bottom + 19, x_form(x))
    for number, (name, points) in enumerate(series):
        kind = ("first", "second")[number]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" class="line {kind}" style="fill: none"/>')
        others, last = dict(series[1 - number][1]) if len(series) > 1 else {}, (-CLOSE, False)
        for x, y in points:
            parts.append(f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="4" class="{kind}"/>')
            # Below another series, and beside a close value that is above its point.
            is_below = y < others[x] if x in others else last[1] and across(x) - last[0] < CLOSE
            text(across(x), up(y) + (19 if is_below else -10), doc.number(y), "value")
            last = (across(x), not is_below)
        if len(series) > 1:
            at = right - 250 + 125 * number
            parts.append(f'<polyline points="{at},40 {at + 26},40" class="line {kind}"/>')
            text(at + 32, 44, name, "")
    described = [f"{name}: " + ", ".join(f"{doc.number(y)} at {x_form(x)}" for x, y in points) for name, points in series]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img">'
    names = f"<title>{escape(title)}</title>\n<desc>{escape('; '.join(described))}</desc>"
    back = f'<style>\n{STYLE}\n</style>\n<rect width="100%" height="100%" rx="6" class="back"/>'
    return "\n".join([head, "<!-- Written by benches/vs_salt/run curves. -->", names, back, *parts, *values, "</svg>"]) + "\n"
