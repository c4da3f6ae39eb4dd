#!/usr/bin/env node
"use strict"
/**
 * Starts the bundled command. Help and version are texts that the build wrote: they need nothing loaded. Everything
 * else goes to the bundle: `reader.js` for the verbs that only read, `main.js` for the others. CommonJS, because it starts faster. Spec: CL-3, CL-60 in specs/cli.md.
 */
const { readFileSync } = require("node:fs")
const { join } = require("node:path")

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
const asked = words.length === 0 || words[0] === "help" || options.includes("--help") || options.includes("-h")
const verb = (words[0] === "help" ? words[1] : words[0]) ?? ""
// Help of what is no command is an error, which the bundle tells.
const wanted = asked
  ? Object.hasOwn(texts.verbs, verb)
    ? texts.verbs[verb]
    : verb === "" || verb.startsWith("-") || verb === "help"
      ? texts.root
      : undefined
  : words[0] === "--version"
    ? `${texts.version}\n`
    : undefined

if (wanted === undefined) {
  // What an earlier turn was shown is in the log; what the next one would be needs the runtime.
  const earlier = words[0] === "context" && options.some((word) => word === "--at" || word.startsWith("--at="))
  const entry = earlier || ["events", "sessions", "messages", "show"].includes(words[0]) ? "reader.js" : "main.js"
  require("./load.js").load(join(bundle, entry)).main(texts.version, words)
} else {
  require("./load.js").load(join(bundle, "stream.js")).print("daybook", wanted)
}
