/** The style of a page: readable widths, both color schemes, the list of prompts beside the messages or above them. */
export const style = `
:root { color-scheme: light dark; --page: #fff; --ink: #1d2127; --dim: #5b6470; --line: #d9dee5; --box: #f5f7f9;
  --asked: #eaf2fd; --accent: #0b5cc0; --bad: #a3241b }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --ink: #e3e7ec; --dim: #98a2ae; --line: #333a43;
  --box: #1d2228; --asked: #1a2a40; --accent: #79b1f7; --bad: #f28b82 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; display: flex;
  flex-direction: row-reverse; justify-content: flex-end }
main { flex: 1; min-width: 0; max-width: 54rem; padding: 1.5rem 2rem 4rem }
nav { width: 18rem; flex: none; position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.5rem 1rem;
  border-right: 1px solid var(--line); font-size: .875rem }
nav ol { padding-left: 1.8rem } nav li { margin: .35rem 0; overflow-wrap: anywhere }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; overflow-wrap: anywhere }
section > h2, nav h2 { font-size: .875rem; color: var(--dim); margin: 1.75rem 0 .5rem }
nav h2 { margin-top: 0 } time { font-weight: normal; float: right }
a { color: var(--accent) }
header p, .spent, .file, figcaption { color: var(--dim); font-size: .8125rem }
footer { margin-top: 3rem; border-top: 1px solid var(--line); color: var(--dim); font-size: .875rem }
code, pre { font: .8125rem/1.45 ui-monospace, monospace }
pre { background: var(--box); border: 1px solid var(--line); border-radius: 6px; padding: .6rem .8rem; margin: .5rem 0;
  white-space: pre-wrap; overflow-wrap: anywhere; max-height: 32rem; overflow-y: auto }
.text { overflow-wrap: anywhere } .text :first-child { margin-top: 0 }
.text h1, .text h2, .text h3 { font-size: 1.05rem }
.text blockquote { margin: .5rem 0; padding-left: .8rem; border-left: 3px solid var(--line); color: var(--dim) }
.text table { border-collapse: collapse; display: block; overflow-x: auto }
.text th, .text td { border: 1px solid var(--line); padding: .25rem .5rem; text-align: left }
.text .to-right { text-align: right } .text .to-center { text-align: center }
.asked { background: var(--asked); border-radius: 6px; padding: .7rem .9rem; white-space: pre-wrap;
  overflow-wrap: anywhere }
details { margin: .5rem 0; border-left: 3px solid var(--line); padding-left: .7rem }
summary { cursor: pointer; overflow-wrap: anywhere } summary code { color: var(--dim) }
summary em, pre.error { color: var(--bad) }
figure { margin: .5rem 0 } img { max-width: 100%; border-radius: 6px }
@media (max-width: 60rem) { body { flex-direction: column-reverse } main { padding: 1rem }
  nav { width: auto; position: static; height: auto; max-height: 40vh; border-right: 0;
    border-bottom: 1px solid var(--line) } }
@media print { nav { display: none } pre { max-height: none } }
`
