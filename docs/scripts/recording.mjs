/**
 * Writes `docs/recording.svg`: a real run of the screen in tmux, with the offline model (`npm run docs:recording`, after a
 * build). Each state of the terminal is a group of lines that the picture shows for as long as the terminal did.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"

const [columns, rows] = [88, 24]
const root = fileURLToPath(new URL("../..", import.meta.url))

// ---- the run

const home = mkdtempSync(join(tmpdir(), "daybook-recording-"))
const project = join(home, "shop")
mkdirSync(project)
const manifest = { name: "shop", scripts: { build: "tsc -b", test: "vitest run", lint: "oxlint" } }
writeFileSync(join(project, "package.json"), JSON.stringify(manifest, null, 2))

const socket = `daybook-recording-${process.pid}`
const env = {
  PATH: process.env.PATH,
  HOME: home,
  LANG: "C.UTF-8",
  TERM: "xterm-256color",
  DAYBOOK_DB: join(home, "daybook.sqlite")
}
const tmux = (...words) =>
  execFileSync("tmux", ["-L", socket, "-f", "/dev/null", ...words], { cwd: project, env, encoding: "utf8" })

const frames = []
const began = performance.now()
/** Looks at the terminal, and keeps what it shows if that is new. */
const look = () => {
  const text = tmux("capture-pane", "-e", "-p", "-t", "0")
  if (text !== frames.at(-1)?.text) frames.push({ at: performance.now() - began, text })
}
/** Watches the terminal for a time, or until it shows a text and stays so for a moment. */
const watch = async (milliseconds, until) => {
  const end = performance.now() + milliseconds
  while (performance.now() < end) {
    look()
    if (until?.test(frames.at(-1).text)) return watch(400)
    await sleep(40)
  }
  if (until !== undefined) throw new Error(`the terminal never showed ${until}:\n${frames.at(-1).text}`)
}
const type = async (text) => {
  for (const character of text) {
    tmux("send-keys", "-t", "0", "-l", character)
    await watch(50)
  }
  tmux("send-keys", "-t", "0", "Enter")
}

try {
  const command = `"${process.execPath}" "${join(root, "packages/cli/bin/daybook.js")}"`
  tmux("new-session", "-d", "-x", `${columns}`, "-y", `${rows}`, command)
  await watch(20_000, /offline/)
  await watch(800)
  await type("Which scripts does package.json define? Read it first.")
  await watch(20_000, /defines \d+ scripts[\s\S]*lint/)
  await watch(1_500)
  await type("/context")
  await watch(4_000)
} finally {
  try {
    tmux("kill-server")
  } catch {
    // The screen has ended by itself.
  }
  rmSync(home, { recursive: true, force: true })
}

// ---- the picture

const [wide, high, margin] = [8.4, 18, 12]
const palette = ["#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4"]
const bright = ["#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff"]
const [ink, paper] = ["#e6edf3", "#0d1117"]

/** A colour of the 256. */
const colourOf = (number) => {
  if (number < 8) return palette[number]
  if (number < 16) return bright[number - 8]
  if (number >= 232) return `rgb(${[0, 0, 0].map(() => 8 + (number - 232) * 10).join()})`
  const level = (part) => (part === 0 ? 0 : 55 + part * 40)
  return `rgb(${[Math.floor((number - 16) / 36), Math.floor((number - 16) / 6) % 6, (number - 16) % 6].map(level).join()})`
}

/** The style after an SGR sequence. */
const styled = (style, codes) => {
  let next = { ...style }
  const rest = codes.split(/[;:]/).map(Number)
  while (rest.length > 0) {
    const code = rest.shift()
    if (code === 0) next = {}
    else if (code === 1) next.bold = true
    else if (code === 2) next.dim = true
    else if (code === 3) next.italic = true
    else if (code === 4) next.underline = true
    else if (code === 7) next.inverse = true
    else if (code === 22) next = { ...next, bold: false, dim: false }
    else if (code === 23) next.italic = false
    else if (code === 24) next.underline = false
    else if (code === 27) next.inverse = false
    else if (code === 38 || code === 48) {
      const colour = rest.shift() === 5 ? colourOf(rest.shift()) : `rgb(${rest.splice(0, 3).join()})`
      next[code === 38 ? "fore" : "back"] = colour
    } else if (code === 39) next.fore = undefined
    else if (code === 49) next.back = undefined
    else if (code >= 30 && code < 38) next.fore = palette[code - 30]
    else if (code >= 40 && code < 48) next.back = palette[code - 40]
    else if (code >= 90 && code < 98) next.fore = bright[code - 90]
    else if (code >= 100 && code < 108) next.back = bright[code - 100]
  }
  return next
}

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

/** The texts of a line, each with the SGR sequence before it. */
const runs = (line) => {
  const [first, ...others] = line.split("\u001b[")
  const after = others.map((part) => {
    const end = part.indexOf("m")
    return { codes: part.slice(0, end), text: part.slice(end + 1) }
  })
  return [{ codes: undefined, text: first }, ...after]
}

/** One line at the height 0. */
const drawn = (line) => {
  const parts = []
  let [style, column] = [{}, 0]
  for (const { codes, text } of runs(line)) {
    if (codes !== undefined) style = styled(style, codes)
    if (text === "") continue
    const [x, width] = [(column * wide).toFixed(1), (text.length * wide).toFixed(1)]
    const [fore, back] = style.inverse ? [style.back ?? paper, style.fore ?? ink] : [style.fore, style.back]
    if (back !== undefined) parts.push(`<rect x="${x}" y="-13" width="${width}" height="${high}" fill="${back}"/>`)
    const looks = [
      fore === undefined ? "" : ` style="fill:${fore}"`,
      style.bold ? ' font-weight="700"' : "",
      style.dim ? ' opacity=".6"' : "",
      style.italic ? ' font-style="italic"' : "",
      style.underline ? ' text-decoration="underline"' : ""
    ].join("")
    if (text.trim() !== "") parts.push(`<text x="${x}" textLength="${width}"${looks}>${escaped(text)}</text>`)
    column += text.length
  }
  return parts.join("")
}

/** A frame that the next one replaces within this time is not shown. */
const shortest = 60
const shown = frames.filter(
  ({ at, text }, index) => text.trim() !== "" && (frames[index + 1]?.at ?? Infinity) - at >= shortest
)
const start = shown[0].at
const length = shown.at(-1).at - start + 5_000

const lines = new Map()
const groups = shown.map(({ at, text }, index) => {
  const uses = text.split("\n").flatMap((line, row) => {
    if (runs(line).every(({ text }) => text.trim() === "")) return []
    if (!lines.has(line)) lines.set(line, `l${lines.size}`)
    return [`<use href="#${lines.get(line)}" y="${row * high}"/>`]
  })
  const percent = (time) => (((time - start) / length) * 100).toFixed(3)
  const [from, to] = [percent(at), percent(shown[index + 1]?.at ?? start + length)]
  const hidden = index === 0 ? "" : "0%{visibility:hidden}"
  const rule = `@keyframes f${index}{${hidden}${from}%{visibility:visible}${to}%,100%{visibility:${index === shown.length - 1 ? "visible" : "hidden"}}}`
  return {
    rule,
    group: `<g style="animation-name:f${index}"${index === shown.length - 1 ? ' class="last"' : ""}>${uses.join("")}</g>`
  }
})

const [width, height] = [Math.ceil(columns * wide) + 2 * margin, rows * high + 2 * margin]
const picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="Daybook's screen answers a prompt with the offline model">
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre;fill:${ink}}
g[style]{visibility:hidden;animation:${(length / 1000).toFixed(2)}s step-end infinite}
@media (prefers-reduced-motion:reduce){g[style]{animation:none}g.last{visibility:visible}}
${groups.map(({ rule }) => rule).join("\n")}
</style>
<rect width="${width}" height="${height}" rx="8" fill="${paper}"/>
<defs>${[...lines].map(([line, id]) => `<g id="${id}">${drawn(line)}</g>`).join("\n")}</defs>
<g transform="translate(${margin} ${margin + 13})">
${groups.map(({ group }) => group).join("\n")}
</g>
</svg>
`
writeFileSync(join(root, "docs/recording.svg"), picture)
console.log(
  `docs/recording.svg: ${shown.length} frames, ${Math.round(picture.length / 1024)} KB, ${Math.round(length / 1000)} s`
)
