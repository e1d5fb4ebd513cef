"""The look of the report's page: colours for light and dark, and one style sheet. No fonts, no images, no scripts."""

from __future__ import annotations

__all__ = ["PALETTES", "patterns", "style_sheet"]

PALETTES: dict[str, dict[str, str]] = {
    "light": {
        "ground": "#fcfcfa", "ink": "#1c1e21", "soft": "#565b62", "rule": "#dcddd8", "line": "#868b92",
        "on-bar": "#ffffff", "link": "#1f5796",
        "rollout": "#2b66a6", "rollout-2": "#2b66a6", "training": "#b2540d", "training-2": "#8f4008",
        "sync": "#6a4aa5", "sync-2": "#4c3080", "other": "#6c7179", "other-2": "#5a5f66",
        "error": "#a3201d", "warning": "#8a5200", "good": "#1d6b3f",
    },
    "dark": {
        "ground": "#16181b", "ink": "#e9e9e6", "soft": "#a9adb4", "rule": "#33373c", "line": "#797f88",
        "on-bar": "#101317", "link": "#8ebcf0",
        "rollout": "#7fb3e8", "rollout-2": "#7fb3e8", "training": "#e39a55", "training-2": "#f2bd8a",
        "sync": "#b79de6", "sync-2": "#d9c9f5", "other": "#949aa3", "other-2": "#a9aeb6",
        "error": "#f39a94", "warning": "#e8b45c", "good": "#7fc99b",
    },
}  # fmt: skip
"""``ink``, ``soft``, ``link`` and the verdicts are text on the ground; ``on-bar`` is text on bars, whose pattern is the
colour of the same name with ``-2``; ``line`` draws what has no bar."""

_SHEET = """
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Liberation Sans",sans-serif;font-variant-numeric:tabular-nums}
header,main,footer{max-width:1120px;margin:0 auto;padding:0 32px}
header{padding-top:32px}
.skip{position:absolute;left:-999px}
.skip:focus{left:32px;top:8px;background:var(--ground);padding:4px 8px}
a{color:var(--link);text-underline-offset:2px}
a:focus-visible,summary:focus-visible,[tabindex]:focus-visible{outline:2px solid var(--link);outline-offset:2px}
h1{font-size:26px;line-height:1.25;font-weight:650;margin:0 0 4px;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:20px;line-height:1.3;font-weight:650;margin:48px 0 8px;overflow-wrap:anywhere}
h3{font-size:16px;font-weight:650;margin:40px 0 6px}
h4{font-size:15px;font-weight:650;margin:32px 0 4px}
p{margin:0 0 12px;max-width:72ch}
.soft,.meta,figcaption,caption{color:var(--soft)}
.meta{margin:0;max-width:none}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:4px 20px;padding:0;margin:16px 0 0}
.answers{display:grid;grid-template-columns:1fr 1.25fr 1.25fr;gap:40px;border-top:1px solid var(--rule);
border-bottom:1px solid var(--rule);padding:20px 0 24px;margin-top:24px}
.answers h2,.answers h3{font-size:14px;font-weight:400;color:var(--soft);margin:0 0 2px}
.answer{font-size:20px;line-height:1.3;font-weight:650;margin:0 0 10px}
.answers ul{list-style:none;margin:0;padding:0}
.answers li{margin:0 0 3px}
.answers dl{margin:10px 0 0;display:grid;grid-template-columns:1fr auto auto;gap:2px 8px;align-items:baseline}
.answers dt{padding-left:22px}.answers dd{margin:0;text-align:right}
.answers dl svg{margin-left:-22px;margin-right:8px;vertical-align:-1px}
.error{color:var(--error)}.warning{color:var(--warning)}.good{color:var(--good)}
.wide{overflow-x:auto;margin:16px 0 0}
table{border-collapse:collapse;width:100%;font-size:14px;line-height:1.4}
caption{text-align:left;padding:0 0 6px;font-size:14px}
th,td{text-align:left;padding:5px 0 5px 24px;vertical-align:baseline;border-bottom:1px solid var(--rule)}
th:first-child,td:first-child{padding-left:0}
thead th{font-weight:400;color:var(--soft);border-bottom-color:var(--line)}
tbody th{font-weight:500;white-space:nowrap}
.n{text-align:right}
.n,.nobreak{white-space:nowrap}
td svg{vertical-align:-3px}
code{font:13px/1.4 ui-monospace,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace;overflow-wrap:anywhere}
th code{color:var(--soft);font-weight:400;margin-left:8px}
td ul{list-style:none;margin:0;padding:0}
td li+li{margin-top:8px}
td code{color:var(--soft)}
td:has(ul){min-width:420px}
tbody th>code:first-child{margin-left:0;color:var(--ink)}
figure{margin:16px 0 0}
figcaption{font-size:14px;margin:0 0 6px}
.plot{overflow:auto}
.tall{max-height:440px;border-bottom:1px solid var(--rule)}
.plot svg{display:block;width:100%;min-width:760px;height:auto}
.legend{display:flex;flex-wrap:wrap;gap:2px 20px;list-style:none;padding:0;margin:6px 0 0;font-size:14px;
color:var(--soft)}
.legend li{display:flex;align-items:center;gap:7px}
details{margin:16px 0 0}
summary{cursor:pointer;color:var(--link);width:max-content;max-width:100%}
dl.words{display:grid;grid-template-columns:max-content 1fr;gap:4px 24px;max-width:88ch}
dl.words dt{font-weight:500}dl.words dd{margin:0;color:var(--soft)}
footer{padding-top:40px;padding-bottom:56px;font-size:14px;color:var(--soft)}
svg text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif;fill:var(--soft)}
svg .name{fill:var(--ink);font-size:13px}
svg .why{font-size:11.5px;font-style:italic}
svg .in{fill:var(--on-bar);font-size:11.5px;pointer-events:none}
.grid{stroke:var(--rule);stroke-width:1;fill:none}
.rollout{fill:var(--rollout)}
.training{fill:url(#p-training)}
.sync{fill:url(#p-sync)}
.sync_at_most{fill:url(#p-sync-at-most)}
.other{fill:url(#p-other)}
.profiling{fill:url(#p-profiling)}
.handover{fill:none;stroke:var(--line);stroke-width:1}
.paused{fill:url(#p-paused)}
.unrecorded{fill:none;stroke:var(--line);stroke-width:1.5;stroke-dasharray:2 4}
.idle{fill:none;stroke:var(--line);stroke-width:1}
.thin{fill:none;stroke-width:5}
.thin.rollout{stroke:var(--rollout)}
.thin.training{stroke:url(#p-training)}
.thin.sync{stroke:url(#p-sync)}
.thin.sync_at_most{stroke:url(#p-sync-at-most)}
.thin.other{stroke:url(#p-other)}
.thin.profiling{stroke:url(#p-profiling)}
.thin.paused{stroke:url(#p-paused)}
.note{margin:12px 0 0}
.defs{position:absolute;width:0;height:0}
@media(max-width:820px){header,main,footer{padding-left:16px;padding-right:16px}
.answers{grid-template-columns:1fr;gap:24px}dl.words{grid-template-columns:1fr}}
@media print{body{background:none}.tall{max-height:none}.plot,.wide{overflow:visible}}
"""

_PATTERNS = """<svg class="defs" aria-hidden="true" focusable="false"><title>Patterns</title><defs>
<pattern id="p-training" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="6" height="6" fill="var(--training)"/><rect width="1.4" height="6" fill="var(--training-2)"/></pattern>
<pattern id="p-sync" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" fill="var(--sync)"/>
<circle cx="2.5" cy="2.5" r="1.2" fill="var(--sync-2)"/></pattern>
<pattern id="p-sync-at-most" width="4" height="4" patternUnits="userSpaceOnUse">
<circle cx="2" cy="2" r="1.4" fill="var(--sync)"/></pattern>
<pattern id="p-other" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
<rect width="6" height="6" fill="var(--other)"/><rect width="1.5" height="6" fill="var(--other-2)"/></pattern>
<pattern id="p-profiling" width="3" height="6" patternUnits="userSpaceOnUse">
<rect width="1.2" height="6" fill="var(--line)"/></pattern>
<pattern id="p-paused" width="6" height="4" patternUnits="userSpaceOnUse">
<rect width="6" height="1" fill="var(--line)"/></pattern>
</defs></svg>
"""


def style_sheet() -> str:
    """Return the style sheet."""
    light, dark = ("".join(f"--{name}:{value};" for name, value in PALETTES[mode].items()) for mode in PALETTES)
    return f":root{{{light}}}\n@media(prefers-color-scheme:dark){{:root{{{dark}}}}}{_SHEET}"


def patterns() -> str:
    """Return the patterns that bars are drawn with: what a bar is can be seen without its colour."""
    return _PATTERNS
