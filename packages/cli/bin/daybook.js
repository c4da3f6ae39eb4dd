#!/usr/bin/env node
"use strict"
require("./node.js")
/**
 * Starts the bundled command. Help and version are texts that the build wrote; they load nothing. Everything else goes to the
 * bundle: `reader.js` for the reading verbs, `main.js` for the others. CommonJS, because it starts faster.
 * Spec: CL-3, CL-60 in specs/cli.md.
 */
const { readFileSync } = require("node:fs")
const { join } = require("node:path")
const { isatty } = require("node:tty")

const bundle = join(__dirname, "..", "dist", "bundle")
const words = process.argv.slice(2)

let texts
try {
  texts = JSON.parse(readFileSync(join(bundle, "help.json"), "utf8"))
} catch {
  process.stderr.write("daybook: the command has not been built: npm run build\n")
  process.exit(70)
}

const end = words.indexOf("--")
const options = end < 0 ? words : words.slice(0, end)
const helps = ["help", "--help", "-h"]
const isHelp = (word) => helps.includes(word)
// Without words, a terminal gets the screen, and everything else help.
const hasScreen = () => isatty(0) && isatty(1) && process.env.TERM !== "dumb"
const asked =
  (words.length === 0 && !hasScreen()) || isHelp(words[0]) || options.some((word) => word === "--help" || word === "-h")
const named = isHelp(words[0]) ? words.slice(1).filter((word) => !isHelp(word)) : words.slice(0, 1)
// An action of a verb has a help of its own: `daybook shell watch --help`, `daybook help shell watch`.
const action = (isHelp(words[0]) ? named : options).slice(0, 2).join(" ")
const about = named.length <= 2 && Object.hasOwn(texts.verbs, action) ? [action] : named
const [, shell] = /^--completions[ =](\w+)$/.exec(words.join(" ")) ?? []
// Help for an unknown command, and surplus words, are errors, which the bundle reports.
const wanted = asked
  ? about.length === 0
    ? texts.root
    : about.length === 1 && Object.hasOwn(texts.verbs, about[0])
      ? texts.verbs[about[0]]
      : undefined
  : words[0] === "--version" && words.length === 1
    ? `${texts.version}\n`
    : shell !== undefined && Object.hasOwn(texts.completions, shell)
      ? texts.completions[shell]
      : undefined

if (wanted === undefined) {
  if (words[0] === "serve") require("./young.js").bound()
  // An earlier request is read from the log; the next request needs the runtime.
  const earlier = words[0] === "context" && options.some((word) => word === "--at" || word.startsWith("--at="))
  // `reader.js` reads only files.
  const isRemote = (process.env.DAYBOOK_SERVER ?? "") !== "" || /^postgres/i.test(process.env.DAYBOOK_DB ?? "")
  const entry =
    !isRemote && (earlier || ["events", "sessions", "messages", "show"].includes(words[0])) ? "reader.js" : "main.js"
  const { main } = require("./load.js").load(join(bundle, entry))
  main(words)
} else {
  require("./load.js").load(join(bundle, "stream.js")).print("daybook", wanted)
}
