/**
 * What every verb prints when all that it prints was written by somebody hostile. Method: titles, prompts, answers, names
 * and inputs of tools, errors and names of files hold what a terminal would obey or hide; each verb runs on a terminal.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import { join } from "node:path"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"
import type { Place } from "./support/Process.ts"

beforeAll(() => void build())

/** An escape sequence of each kind, and characters of each kind that are not seen. */
const hostile =
  "\u001b]52;c;cm0gLXJm\u0007\u001b]0;t\u001b\\\u001b[2J\u001b[8m\u009b1A\u0090q\u009c\r\b\u007f" +
  "\u200b\u200d\u00ad\u202e\u2066\ufeff\u{e0041}\ufe0f\u{e0100}\u2028\u3164▓"

const forbidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/u

/** What the terminal adds, and the pictures of the command itself: styles, the region that is drawn again, the paste mode. */
const own = [/\r\n/g, /\u001b\[(?:2|22|31|32|39|7|27)m/g, /\r(?:\u001b\[\d+A)?\u001b\[J/g, /\u001b\[\?2004[hl]/g]

const assertSafe = (printed: string, of: string) => {
  const rest = own.reduce((text, sequence) => text.replaceAll(sequence, "\n"), printed)
  const at = rest.search(forbidden)
  assert.strictEqual(at, -1, `${of} printed ${JSON.stringify(rest.slice(Math.max(0, at - 60), at + 60))}`)
}

/** Agents, templates and skills, a server and a configuration that are hostile. */
const configure = (here: Place) => {
  const folder = join(here.root, ".config", "daybook")
  mkdirSync(join(folder, "agents"), { recursive: true })
  const quoted = JSON.stringify(hostile)
  writeFileSync(
    join(folder, "config.yaml"),
    [
      "agents:",
      "  build: { permissions: [{ permission: '*', resource: '*', verdict: allow }] }",
      `  evil: { description: ${quoted} }`,
      "mcp:",
      `  evil: { command: node, args: [-e, ${JSON.stringify(`console.error(${quoted});process.exit(1)`)}] }`
    ].join("\n")
  )
  writeFileSync(join(folder, "agents", `bad${hostile}.md`), `---\nmode: ${quoted}\n---\n`)
  const broken = join(here.root, "broken.yaml")
  writeFileSync(broken, `agents: ${quoted}\n${JSON.stringify(`x${hostile}`)}: 1\n`)
  return { broken }
}

/** Its models have hostile names, and every request gets a hostile error. */
const evilProvider = Effect.map(
  Effect.acquireRelease(
    Effect.async<Server>((resume) => {
      const server = createServer((request, response) => {
        const list = request.url?.endsWith("/models") === true
        response.writeHead(list ? 200 : 400, { "content-type": "application/json", connection: "close" })
        response.end(
          JSON.stringify(list ? { data: [{ id: `m${hostile}` }] } : { error: { message: `error ${hostile}` } })
        )
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ),
  (server) => {
    const address = server.address()
    return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/v1`
  }
)

describe("a hostile session", () => {
  it.scopedLive(
    "CL-150: no verb sends a terminal what was written by others raw, whatever field it stands in",
    () =>
      Effect.gen(function* () {
        const { env, here, model } = yield* held
        const { broken } = configure(here)
        const terminal = { columns: 200, rows: 40 }
        const printed = (words: ReadonlyArray<string>, more: Readonly<Record<string, string>> = {}) =>
          Effect.map(
            Effect.flatMap(
              here.start(words, { env: { ...env, ...more }, sharedTerminal: terminal }),
              (run) => run.ended
            ),
            ({ stdout }) => {
              assertSafe(stdout.slice(stdout.indexOf("\n") + 1), words.join(" "))
              return stdout
            }
          )
        const run = yield* here.start(["prompt", "--session", `t${hostile}`, `ask ${hostile}`], { env, terminal })
        const first = yield* model.next
        yield* first.reasoning(`think ${hostile}`)
        yield* first.text(`say ${hostile}`)
        yield* first.toolCall(`call${hostile}`, `tool${hostile}`, { [`key${hostile}`]: `value${hostile}` })
        yield* first.toolCall("call_2", "bash", { command: `printf %s '${hostile.replaceAll("\r", "")}'; exit 1` })
        yield* first.toolCall("call_3", "read", { path: `no${hostile}` })
        yield* first.finish("tool_calls")
        const second = yield* model.next
        yield* second.text(`done ${hostile}`)
        yield* second.finish()
        const followed = yield* run.ended
        assertSafe(followed.stdout.slice(followed.stdout.indexOf("\n") + 1), "prompt")
        assert.include(followed.stdout, "done ␛]52;c;cm0gLXJm␇")
        const id = /ses_\w+/.exec(followed.stdout)?.[0] ?? ""
        const lines = [
          ["sessions"],
          ["sessions", "--json"],
          ["events", id],
          ["events", id, "--json"],
          ["messages", id],
          ["messages", id, "--json"],
          ["show", id],
          ["show", id, "--json"],
          ["context", id, "--json"],
          ["context", id, "--tokens"],
          ["context", id, "--at", "1000"],
          ["budget", id],
          ["answer", id],
          ["agents"],
          ["agents", "--json"],
          ["switch", id, "--agent", `a${hostile}`],
          ["rename", id, `u${hostile}`],
          ["files", "export"],
          ["files", "verify"],
          ["prompt", "--agent", `n${hostile}`, "x"],
          ["prompt", "--attach", `/no${hostile}`, "x"],
          [`verb${hostile}`],
          ["show", `--o${hostile}`],
          ["remove", `nobody${hostile}`]
        ]
        yield* Effect.forEach(lines, (line) => printed(line), { concurrency: 3, discard: true })
        yield* printed(["agents"], { DAYBOOK_CONFIG: broken })
        yield* printed(["show", id], { DAYBOOK_DEBUG: "1" })
        const evil = { DAYBOOK_BASE_URL: yield* evilProvider }
        assert.include(yield* printed(["models"], evil), "m␛]52")
        const failed = yield* printed(["prompt", "x"], { ...evil, DAYBOOK_DEBUG: "1" })
        // The sentence is broken at words.
        assert.include(failed.replaceAll(/\s+/g, " "), "error ␛]52")
        yield* printed(["doctor", "--mcp"], evil)
        yield* printed(["doctor", "--mcp", "--json"], evil)
        const shown = yield* printed(["show", id])
        for (const what of ["say ␛]52", "think ␛]52", "tool␛]52"]) assert.include(shown, what)
      }),
    // Some thirty starts of the command, one after the other.
    120_000
  )
})
