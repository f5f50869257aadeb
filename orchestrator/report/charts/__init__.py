"""Pictures as Vega-Lite specs: pure functions from rows to specs, data inside. One picture a module.

All panels of a picture stand in one view, each with a y scale of its own range, so that they share one x axis, one
legend and the page's width. How the data stay small: a picture has at most `curves.LIMIT` configurations, a
distribution at most `latency.STEPS` points a line, a timeline at most `bars.MOST` requests, telemetry at most
`telemetry.MOST` samples a panel, and numbers have five digits.
"""
