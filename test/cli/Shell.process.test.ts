/**
 * `daybook shell watch`: what live shells ran, replayed and followed.
 * Method: the test's process records, with a store of its own on the database; the command reads in another process.
 */
import { mkdirSync, readFileSync } from "node:fs"
import { dirname } from "node:path"
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect } from "effect"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { shell } from "../../packages/cli/src/commands/shell.ts"
import * as Store from "../../packages/log/src/Store.ts"
import * as ShellRecord from "../../packages/shell/src/record/ShellRecord.ts"
import { pruned } from "../support/Pruning.ts"
import { build } from "./support/Bundle.ts"
import { jsonLines, type Place, place } from "./support/Process.ts"

beforeAll(() => void build())

const [one, two] = [SessionID.make("ses_one"), SessionID.make("ses_two")]

const opened = ShellRecord.opened("1_local", { transport: "local" }, "/home/u")
const closed = ShellRecord.closed("1_local", "destroyed")
const ran = (command: string, stdout = "") =>
  ShellRecord.executed("1_local", command, {
    stdout,
    stderr: "",
    exit_code: 1,
    duration_ms: 3_412,
    cwd: "/home/u",
    truncated: false
  })

/** Appends to the database of the place, from this process. */
const append = ({ database }: Place, sessionID: SessionID, facts: ReadonlyArray<ShellRecord.ShellFact>) =>
  Effect.flatMap(EventLog, (log) => Effect.forEach(facts, (fact) => log.append(sessionID, [fact]))).pipe(
    Effect.provide(Store.layer({ filename: database }))
  )

/** A place with two sessions, called one and two, that have other events too. */
const stored = Effect.tap(place, (here) => {
  mkdirSync(dirname(here.database), { recursive: true, mode: 0o700 })
  return Effect.gen(function* () {
    const log = yield* EventLog
    for (const [id, title] of [
      [one, "one"],
      [two, "two"]
    ] as const) {
      yield* log.append(id, [
        draft("session.created", { location: { directory: here.cwd }, title }),
        draft("session.next.renamed", { title }),
        opened
      ])
    }
  }).pipe(Effect.provide(Store.layer({ filename: here.database })))
})

const watch = ["shell", "watch"]

it.scopedLive("SL-113: watch prints the shells of all sessions or of one, in order, and changes nothing", () =>
  Effect.gen(function* () {
    const here = yield* stored
    yield* append(here, one, [ran("npm run build")])
    yield* append(here, two, [ran("ls"), closed])
    const before = readFileSync(here.database)
    const all = yield* here.run(watch)
    assert.strictEqual(
      all.stdout,
      [
        "== ses_one ==",
        "[1_local] opened",
        "== ses_two ==",
        "[1_local] opened",
        "== ses_one ==",
        "[1_local] /home/u $ npm run build",
        "exit 1 in 3.4 s",
        "== ses_two ==",
        "[1_local] /home/u $ ls",
        "exit 1 in 3.4 s",
        "[1_local] closed: destroyed\n"
      ].join("\n")
    )
    const single = yield* here.run([...watch, "one"])
    assert.strictEqual(single.stdout, "[1_local] opened\n[1_local] /home/u $ npm run build\nexit 1 in 3.4 s\n")
    assert.deepStrictEqual([all.code, all.stderr, single.code, single.stderr], [0, "", 0, ""])
    assert.isTrue(before.equals(readFileSync(here.database)))
  })
)

it.scopedLive("SL-114: with --follow it prints what other processes record, each event once", () =>
  Effect.gen(function* () {
    const here = yield* stored
    const all = yield* here.start([...watch, "--follow", "--json"])
    const single = yield* here.start([...watch, "two", "--follow"])
    yield* all.until("stdout", (text) => jsonLines(text).length === 2)
    yield* single.until("stdout", (text) => text.includes("opened"))
    yield* append(here, one, [ran("first")])
    yield* all.until("stdout", (text) => text.includes("first"))
    yield* append(here, two, [ran("second"), closed])
    const seen = yield* all.until("stdout", (text) => text.includes("shell.closed"))
    const text = yield* single.until("stdout", (text) => text.includes("closed"))
    assert.strictEqual(
      text,
      "[1_local] opened\n[1_local] /home/u $ second\nexit 1 in 3.4 s\n[1_local] closed: destroyed\n"
    )
    assert.deepStrictEqual(
      jsonLines(seen).map(({ sessionID, type }) => [sessionID, type]),
      [
        [one, "session.next.shell.opened"],
        [two, "session.next.shell.opened"],
        [one, "session.next.shell.executed"],
        [two, "session.next.shell.executed"],
        [two, "session.next.shell.closed"]
      ]
    )
  })
)

it.scopedLive(
  "SL-115: --after continues after a seq of a session, or after a position of all; --json is that of events",
  () =>
    Effect.gen(function* () {
      const here = yield* stored
      yield* append(here, one, [ran("first"), ran("second"), closed])
      const all = yield* here.run([...watch, "--json"])
      const single = yield* here.run([...watch, "one", "--json"])
      const events = (yield* here.run(["events", "one", "--json"])).stdout
      assert.strictEqual(single.stdout, events.split("\n").slice(2).join("\n"))
      for (const [words, output, cursor] of [
        [[], all.stdout, "position"],
        [["one"], single.stdout, "seq"]
      ] as const) {
        const lines = output.split("\n")
        for (const [index, event] of jsonLines(output).entries()) {
          const rest = yield* here.run([...watch, ...words, "--json", "--after", String(event[cursor])])
          assert.strictEqual(rest.stdout, lines.slice(index + 1).join("\n"))
        }
      }
      const ahead = yield* here.run([...watch, "--after", "999"])
      assert.deepStrictEqual([ahead.code, ahead.stdout], [2, ""])
    })
)

it.scopedLive("SL-112: what a command is called and prints cannot control the terminal", () =>
  Effect.gen(function* () {
    const here = yield* stored
    yield* append(here, one, [ran("echo \u001b[2J\r[2_local] opened\u202e", "red \u001b[31m\r\nnext\u0007")])
    const { stdout } = yield* here.run([...watch, "one", "--output"])
    assert.include(stdout, "[1_local] /home/u $ echo ␛[2J [2_local] opened\\u{202e}\n| red ␛[31m \n| next␇\n")
    // eslint-disable-next-line no-control-regex
    assert.notMatch(stdout, /[\u0000-\u0009\u000b-\u001f\u202e]/)
  })
)

it.scopedLive("SL-116: pruned events are left out, of a session and of all", () =>
  Effect.gen(function* () {
    const here = yield* stored
    yield* append(here, one, [ran("first"), closed])
    yield* Effect.provide(pruned(one), Store.layer({ filename: here.database }))
    yield* append(here, one, [opened, ran("second")])
    const rest = "[1_local] opened\n[1_local] /home/u $ second\nexit 1 in 3.4 s\n"
    assert.strictEqual((yield* here.run([...watch, "one"])).stdout, rest)
    assert.strictEqual((yield* here.run([...watch, "one", "--after", "1"])).stdout, rest)
    assert.strictEqual((yield* here.run(watch)).stdout, `== ses_two ==\n[1_local] opened\n== ses_one ==\n${rest}`)
  })
)

it.scopedLive(
  "SL-117: an unknown action, a second session or an unknown option is a usage error, an unknown session 3",
  () =>
    Effect.gen(function* () {
      const here = yield* stored
      const ended = (...words: ReadonlyArray<string>) =>
        Effect.map(here.run(["shell", ...words]), ({ code, stderr, stdout }) => [code, stdout, stderr])
      const actions = (shell.actions ?? []).map(({ name }) => name).join(", ")
      assert.deepStrictEqual(yield* ended(), [2, "", `daybook: say what to do: daybook shell ${actions}\n`])
      assert.deepStrictEqual(yield* ended("wacth"), [
        2,
        "",
        'daybook: there is no "shell wacth"; did you mean watch?\n'
      ])
      assert.deepStrictEqual(yield* ended("telnet"), [2, "", `daybook: there is no "shell telnet"; use ${actions}\n`])
      assert.deepStrictEqual(yield* ended("watch", "one", "two"), [
        2,
        "",
        'daybook: shell watch: unexpected argument "two"\n'
      ])
      assert.strictEqual((yield* ended("watch", "--folow"))[0], 2)
      // An option of the action may stand before it.
      assert.deepStrictEqual((yield* ended("--after", "999", "watch")).slice(0, 2), [2, ""])
      assert.deepStrictEqual((yield* ended("--json", "watch", "two")).slice(0, 1), [0])
      assert.deepStrictEqual((yield* ended("watch", "three")).slice(0, 2), [3, ""])
      assert.deepStrictEqual((yield* ended("watch", "ses_three")).slice(0, 2), [3, ""])
    })
)
