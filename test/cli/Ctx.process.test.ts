/** `ctx` as a process over files that are there, with no database anywhere. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import { build } from "./support/Bundle.ts"
import { jsonLines, place } from "./support/Process.ts"
import { everyPath, houseOf, makeOld, row, stamps, text, uid, writeIndex, writeSession } from "./support/SessionTree.ts"

beforeAll(() => void build())

const answer = row("assistant", text("Hello\u001b[31m there"), { model: "p/m" })
const conversation = row("user", text("Hi")) + answer

/** A place with two sessions of the agent coder, the second one current. */
const two = Effect.gen(function* () {
  const here = yield* place
  const root = join(here.root, "data", "ctx")
  const house = houseOf(root)
  writeSession(house, "default", {
    messages: conversation,
    events: `{"type":"state","id":"evt_1","seq":0}\n{"type":"done","id":"evt_2.1","seq":5}\n`,
    latest: "the default answer\n",
    state: "done",
    cwd: "/work",
    meta: { version: 1, title: "Say hello" }
  })
  writeSession(house, "review-1", {
    latest: "the review\n",
    state: "active",
    cwd: "/",
    updated: "2026-02-01T00:00:00.000Z"
  })
  writeIndex(house, {
    list: ["review-1", "default"],
    current: "review-1",
    byCwd: { "/work": "default", "/": "review-1" }
  })
  return { here, root, house, folder: join(house, "default") }
})

describe("ctx", () => {
  it.scopedLive("CL-101, AB-2: without a session it is the current one, without a current one the default one", () =>
    Effect.gen(function* () {
      const { here, house } = yield* two
      assert.strictEqual((yield* here.ctx(["latest", "coder"])).stdout, "the review\n")
      assert.strictEqual((yield* here.ctx(["latest", "coder", "default"])).stdout, "the default answer\n")
      rmSync(join(house, "index"), { recursive: true })
      assert.strictEqual((yield* here.ctx(["latest", "coder"])).stdout, "the default answer\n")
    })
  )

  it.scopedLive("CL-101: the root is --root, else DAYBOOK_ROOT, else ctx beside the database", () =>
    Effect.gen(function* () {
      const { here } = yield* two
      const [first, second] = [join(here.root, "first"), join(here.root, "second")]
      for (const root of [first, second]) writeSession(houseOf(root), "default", { latest: `${root}\n` })
      const env = { DAYBOOK_ROOT: first }
      assert.strictEqual((yield* here.ctx(["latest", "coder", "--root", second], { env })).stdout, `${second}\n`)
      assert.strictEqual((yield* here.ctx(["latest", "coder"], { env })).stdout, `${first}\n`)
      assert.strictEqual((yield* here.ctx(["latest", "coder", "--root=../first"])).stdout, `${first}\n`)
      assert.strictEqual((yield* here.ctx(["latest", "coder"])).stdout, "the review\n")
    })
  )

  it.scopedLive("AB-1, AB-2: no timestamp changes, and no database appears", () =>
    Effect.gen(function* () {
      const { here, root } = yield* two
      const paths = everyPath(root)
      makeOld(paths)
      const before = stamps(paths)
      for (const words of [
        ["history", "coder", "default"],
        ["history", "coder", "default", "--json"],
        ["latest", "coder"],
        ["latest", "coder", "--json"],
        ["resume", "coder"],
        ["resume", "coder", "--cwd", "/work", "--json"],
        ["sessions", "coder"],
        ["sessions", "coder", "--json"]
      ]) {
        const ended = yield* here.ctx(words)
        assert.deepStrictEqual([words, ended.code, ended.stderr], [words, 0, ""])
        assert.deepStrictEqual(stamps(paths), before)
      }
      assert.isFalse(existsSync(here.database))
    })
  )

  it.scopedLive("CL-107: history tells who said what and when, calls with their results on a line", () =>
    Effect.gen(function* () {
      const { folder, here } = yield* two
      appendFileSync(
        join(folder, "messages.jsonl"),
        row(
          "assistant",
          [...text("Looking."), { type: "tool_call", tool_call_id: "c1", name: "read", input: { path: "a" } }],
          {
            model: "p/m"
          }
        ) +
          row("tool", [{ type: "tool_result", tool_call_id: "c1", content: text("one\ntwo\n") }], { name: "read" }) +
          row("user", "an older row") +
          row("assistant", [], { model: "p/m", error: { code: "EIO", message: "cut off" } })
      )
      const { stdout } = yield* here.ctx(["history", "coder", "default"])
      const head = (who: string) => `## ${who}  2026-01-02 03:04:05\n`
      assert.strictEqual(
        stdout,
        `${head("user")}\nHi\n\n${head("assistant (p/m)")}\nHello\u001b[31m there\n\n` +
          `${head("assistant (p/m)")}\nLooking.\n\n→ read {"path":"a"}\n\n← read one two\n\n` +
          `${head("user")}\nan older row\n\n${head("assistant (p/m)")}\n! cut off\n\n`
      )
    })
  )

  it.scopedLive("CL-107: history --json is the file, byte for byte, however long", () =>
    Effect.gen(function* () {
      const { folder, here } = yield* two
      // Lines across the borders of what is read at once, and characters across those of bytes.
      for (let at = 0; at < 400; at++) {
        appendFileSync(join(folder, "messages.jsonl"), row("user", text("ß\u2028".repeat(at * 7)), { n: at }))
      }
      const { code, stderr, stdout } = yield* here.ctx(["history", "coder", "default", "--json"])
      assert.deepStrictEqual([code, stderr], [0, ""])
      assert.isTrue(stdout === readFileSync(join(folder, "messages.jsonl"), "utf8"))
    })
  )

  it.scopedLive("CL-108: latest --json is one object with the whole text", () =>
    Effect.gen(function* () {
      const { folder, here } = yield* two
      const words = `${"€\r\n\u0000\u009b".repeat(30_000)}\r\n`
      writeFileSync(join(folder, "latest.md"), `${words}\n`)
      const { stdout } = yield* here.ctx(["latest", "coder", "default", "--json"])
      assert.isTrue(stdout === `${JSON.stringify({ session: "default", text: words })}\n`)
    })
  )

  it.scopedLive("CL-109, IX-3: resume names the session, how it is, and the event to go on after", () =>
    Effect.gen(function* () {
      const { here } = yield* two
      assert.strictEqual(
        (yield* here.ctx(["resume", "coder", "--cwd", "//work/./"])).stdout,
        "session  default\nstate    done\ncwd      /work\nupdated  2026-01-02T03:04:05.006Z\nafter    evt_2.1\n"
      )
      assert.deepStrictEqual(jsonLines((yield* here.ctx(["resume", "coder", "--json"])).stdout), [
        { session: "review-1", state: "active", cwd: "/", updated_at: "2026-02-01T00:00:00.000Z" }
      ])
    })
  )

  it.scopedLive("IX-5: a hint of the index that the session's own file denies is not followed", () =>
    Effect.gen(function* () {
      const { folder, here } = yield* two
      writeFileSync(join(folder, "cwd"), "/work2\n")
      const { code, stderr, stdout } = yield* here.ctx(["resume", "coder", "--cwd", "/work"])
      assert.deepStrictEqual([code, stdout], [1, ""])
      assert.strictEqual(stderr, `ctx: no session of agent coder of user ${uid} works in /work\n`)
    })
  )

  it.scopedLive("CL-110: sessions come as the index has them, each with its own state, folder and title", () =>
    Effect.gen(function* () {
      const { here } = yield* two
      assert.strictEqual(
        (yield* here.ctx(["sessions", "coder"])).stdout,
        "2026-02-01 00:00:00  active  review-1  /\n2026-01-02 03:04:05  done    default  /work  Say hello\n"
      )
      assert.deepStrictEqual(jsonLines((yield* here.ctx(["sessions", "coder", "--json"])).stdout), [
        { session: "review-1", state: "active", updated_at: "2026-02-01T00:00:00.000Z", cwd: "/" },
        { session: "default", state: "done", updated_at: "2026-01-02T03:04:05.006Z", cwd: "/work", title: "Say hello" }
      ])
    })
  )

  it.scopedLive("CL-110: a session that cannot be read hides none of the others and is told", () =>
    Effect.gen(function* () {
      const { here, house } = yield* two
      rmSync(join(house, "review-1", "state"))
      const { code, stderr, stdout } = yield* here.ctx(["sessions", "coder"])
      assert.strictEqual(code, 1)
      assert.match(stdout, /^\S+ \S+ {2}done {4}default {2}/)
      assert.match(
        stderr,
        /^ctx: EIO: \S+\/review-1\/state is missing; daybook files rebuild .*\nctx: not every session/
      )
    })
  )

  it.scopedLive("CL-103: what is not there is told with exit code 1", () =>
    Effect.gen(function* () {
      const { folder, here, house } = yield* two
      rmSync(join(folder, "latest.md"))
      for (const [words, sentence] of [
        [["latest", "coder", "default"], /^ctx: session default has no answer yet\n$/],
        [
          ["latest", "coder", "other"],
          /^ctx: there is no session other of agent coder of user \d+; ctx sessions coder lists/
        ],
        [["history", "nobody"], /^ctx: there are no sessions of agent nobody of user \d+ at \//],
        [["history", "coder", "--model"], /^ctx: there are no sessions of model coder /],
        [
          ["history", "coder", "--shared", "team"],
          /^ctx: there are no sessions of agent coder in the shared space team /
        ],
        [["resume", "coder", "--cwd", "/elsewhere"], /^ctx: no session .* works in \/elsewhere\n$/],
        [
          ["latest", "coder", "--root", join(here.root, "none")],
          /^ctx: there are no session files at .*; daybook serve/
        ]
      ] as const) {
        const { code, stderr, stdout } = yield* here.ctx(words)
        assert.deepStrictEqual([words, code, stdout], [words, 1, ""])
        assert.match(stderr, sentence)
      }
      rmSync(join(house, "index", "list"))
      assert.strictEqual((yield* here.ctx(["sessions", "coder"])).code, 1)
    })
  )

  it.scopedLive("CL-102, AB-3: a line that cannot be used is refused with exit code 2 before a file is looked at", () =>
    Effect.gen(function* () {
      const here = yield* place
      for (const [words, says] of [
        [["look"], "there is no command"],
        [["history"], "AGENT is missing"],
        [["latest", "--model"], "MODEL is missing"],
        [["history", "coder", "a", "b"], "unexpected argument"],
        [["resume", "coder", "a"], "takes no session"],
        [["history", "coder", "--nope"], "has no option"],
        [["history", "coder", "--json=1"], "takes no value"],
        [["history", "coder", "--root"], "needs a value"],
        [["history", "coder", "--uid", "-1"], "is not a user id"],
        [["history", "coder", "--uid", "01"], "is not a user id"],
        [["history", "coder", "--uid", "4294967295"], "is not a user id"],
        [["history", "coder", "--uid", "1", "--shared", "team"], "exclude each other"],
        [["history", "coder", "--shared", "../x"], "is not a valid name"],
        [["history", "coder", "--cwd", "/"], "is an option of ctx resume"],
        [["resume", "coder", "--cwd", "work"], "is not an absolute path"],
        [["resume", "coder", "--cwd", "/a/../b"], "is not an absolute path"]
      ] as const) {
        const { code, stderr, stdout } = yield* here.ctx(words)
        assert.deepStrictEqual([words, code, stdout], [words, 2, ""])
        assert.include(stderr, says)
      }
    })
  )

  it.scopedLive("NA-1: what is no name is refused, and never becomes part of a path", () =>
    Effect.gen(function* () {
      const { here, root } = yield* two
      // What a path made of them would lead to is there.
      mkdirSync(join(root, "home", "messages.jsonl"), { recursive: true })
      const long = "a".repeat(65)
      for (const name of [
        "..",
        ".",
        "../coder",
        "a/b",
        "/etc",
        "",
        ".hidden",
        "-",
        "a b",
        "ä",
        "a\n",
        "a.sock",
        "a.d",
        long
      ]) {
        const asAgent = yield* here.ctx(["latest", "--", name])
        const asSession = yield* here.ctx(["latest", "coder", name, "--json"].filter((word) => word !== "-"))
        assert.deepStrictEqual([name, asAgent.code, asAgent.stdout], [name, 2, ""])
        if (name !== "-") assert.deepStrictEqual([name, asSession.code, asSession.stdout], [name, 2, ""])
      }
    })
  )

  it.scopedLive("NA-2: list, current and by-cwd may be names of sessions, index may not", () =>
    Effect.gen(function* () {
      const { here, house } = yield* two
      for (const name of ["list", "current", "by-cwd"]) {
        writeSession(house, name, { latest: `${name}\n` })
        assert.strictEqual((yield* here.ctx(["latest", "coder", name])).stdout, `${name}\n`)
      }
      const refused = yield* here.ctx(["latest", "coder", "index"])
      assert.strictEqual(refused.code, 2)
      assert.include(refused.stderr, "index is the name of the index of sessions")
    })
  )

  it.scopedLive("CL-105: a name in the index that is none is not used as a path", () =>
    Effect.gen(function* () {
      const { here, house } = yield* two
      writeFileSync(join(house, "index", "current"), "../session/default\n")
      const { code, stderr } = yield* here.ctx(["latest", "coder"])
      assert.strictEqual(code, 1)
      assert.match(stderr, /^ctx: EIO: .*index\/current does not contain a session's name; daybook files rebuild/)
    })
  )

  it.scopedLive("CL-104: nothing is followed that is a symbolic link, and nothing but files is read", () =>
    Effect.gen(function* () {
      const { folder, here, house, root } = yield* two
      const secret = join(here.root, "secret")
      writeSession(secret, "default", { latest: "secret\n" })
      const refuses = (words: ReadonlyArray<string>) =>
        Effect.map(here.ctx(words), ({ code, stderr, stdout }) => {
          assert.deepStrictEqual([words, code, stdout], [words, 1, ""])
          assert.match(stderr, /^ctx: EIO: .* is (a symbolic link|not a real folder|not a regular file)/)
        })
      const latest = join(folder, "latest.md")
      rmSync(latest)
      symlinkSync(join(secret, "default", "latest.md"), latest)
      yield* refuses(["latest", "coder", "default"])
      rmSync(latest)
      mkdirSync(latest)
      yield* refuses(["latest", "coder", "default"])
      symlinkSync(join(secret, "default"), join(house, "linked"))
      yield* refuses(["latest", "coder", "linked"])
      const other = join(root, "home", String(uid), "agent", "other")
      mkdirSync(other)
      symlinkSync(secret, join(other, "session"))
      yield* refuses(["latest", "other"])
      symlinkSync(join(root, "home", String(uid)), join(root, "home", "4000"))
      yield* refuses(["latest", "coder", "--uid", "4000"])
      rmSync(join(house, "index"), { recursive: true })
      symlinkSync(secret, join(house, "index"))
      yield* refuses(["sessions", "coder"])
    })
  )

  it.scopedLive("CL-104: the root may be a link, since the reader chose it", () =>
    Effect.gen(function* () {
      const { here, root } = yield* two
      const link = join(here.root, "link")
      symlinkSync(root, link)
      assert.strictEqual((yield* here.ctx(["latest", "coder", "--root", link])).stdout, "the review\n")
    })
  )

  it.scopedLive(
    "FL-7, AB-4: a line that is torn or no message is an error with its number, after what was before it",
    () =>
      Effect.gen(function* () {
        const { here, house } = yield* two
        const cases = [
          ['{"role":"user","content":[', "its end is missing"],
          [answer.trimEnd(), "its end is missing"],
          ['{"role":"user"}\n', "is not a message"],
          ['{"role":"user","content":[1]}\n', "is not a message"],
          ["\n", "is not a message"],
          ["[]\n", "is not a message"],
          [`${answer.trimEnd()}${answer}`, "is not a message"],
          ["\0\0\0\0\n", "is not a message"]
        ] as const
        // Each in a session of its own and two at a time: an open line is waited for.
        const check = Effect.fn(function* ([bad, says]: (typeof cases)[number], nth: number) {
          const name = `bad-${nth}`
          writeSession(house, name, { messages: conversation + bad })
          const words = ["history", "coder", name]
          const [shown, raw] = yield* Effect.all([here.ctx(words), here.ctx([...words, "--json"])], {
            concurrency: 2
          })
          assert.strictEqual(shown.code, 1)
          assert.match(shown.stdout, /^## user .*\n\nHi\n\n## assistant .*\n\n.*\n\n$/)
          const where = `${join(house, name, "messages.jsonl")}, line 3${says.startsWith("its") ? ":" : ""}`
          const message = `EIO: ${where} ${says}; daybook files rebuild rewrites it from the events`
          assert.strictEqual(shown.stderr, `ctx: ${message}\n`)
          assert.strictEqual(raw.stdout, `${conversation}${JSON.stringify({ type: "error", code: "EIO", message })}\n`)
          assert.strictEqual(raw.code, 1)
        })
        yield* Effect.forEach(cases, check, { concurrency: 2, discard: true })
      })
  )

  it.scopedLive("FL-7: a torn line of events and a value without its newline are errors, not guesses", () =>
    Effect.gen(function* () {
      const { folder, here } = yield* two
      appendFileSync(join(folder, "events.jsonl"), '{"type":"done","id":"evt_3"')
      const torn = yield* here.ctx(["resume", "coder", "--cwd", "/work"])
      assert.deepStrictEqual([torn.code, torn.stdout], [1, ""])
      assert.match(torn.stderr, /EIO: .*events\.jsonl: the end of its last line is missing; daybook files rebuild/)
      writeFileSync(join(folder, "state"), "")
      const empty = yield* here.ctx(["resume", "coder", "--cwd", "/work"])
      assert.match(empty.stderr, /EIO: .*state has no newline at its end/)
    })
  )

  it.scopedLive("AB-3: rows that were written before a line without end are followed by the error as a row", () =>
    Effect.gen(function* () {
      const { here, house } = yield* two
      const check = Effect.fn(function* (name: string, before: string) {
        writeSession(house, name, { messages: `${before}{"role":` })
        const { code, stderr, stdout } = yield* here.ctx(["history", "coder", name, "--json"])
        const message = stderr.slice("ctx: ".length, -1)
        assert.match(message, /^EIO: .*: its end is missing; daybook files rebuild/)
        const frame = `${JSON.stringify({ type: "error", code: "EIO", message })}\n`
        assert.deepStrictEqual([code, stdout], [1, before === "" ? "" : before + frame])
      })
      yield* Effect.all([check("one", answer), check("none", "")], { concurrency: 2 })
    })
  )

  it.scopedLive("FL-7: a value that has no end, and one that is empty, are errors before anything is shown", () =>
    Effect.gen(function* () {
      const { folder, here } = yield* two
      for (const text of ["half an answ", ""]) {
        writeFileSync(join(folder, "latest.md"), text)
        for (const more of [[], ["--json"]]) {
          const { code, stderr, stdout } = yield* here.ctx(["latest", "coder", "default", ...more])
          assert.deepStrictEqual([code, stdout], [1, ""])
          assert.match(stderr, /^ctx: EIO: .*latest\.md has no newline at its end; daybook files rebuild/)
        }
      }
    })
  )

  it.scopedLive("FL-7: bytes that are no UTF-8 are errors, and nothing is shown in their place", () =>
    Effect.gen(function* () {
      const { folder, here } = yield* two
      const put = (name: string, text: string) => writeFileSync(join(folder, name), Buffer.from(text, "latin1"))
      put("messages.jsonl", `${row("user", text("one"))}${row("user", text("\xff"))}`)
      put("latest.md", "\xff\n")
      put("events.jsonl", '{"id":"evt_\xff"}\n')
      put("meta.json", '{"title":"\xff"}\n')
      for (const [says, ...words] of [
        ["messages\\.jsonl, line 2 is not UTF-8", "history", "coder", "default"],
        ["messages\\.jsonl, line 2 is not UTF-8", "history", "coder", "default", "--json"],
        ["latest\\.md is not UTF-8", "latest", "coder", "default", "--json"],
        ["events\\.jsonl: its last line is not UTF-8", "resume", "coder", "--cwd", "/work"],
        ["meta\\.json is not UTF-8", "sessions", "coder"]
      ] as const) {
        const { code, stderr, stdout } = yield* here.ctx(words)
        assert.strictEqual(code, 1)
        assert.match(stderr, new RegExp(`EIO: .*${says}; daybook files rebuild`))
        assert.notInclude(stdout, "\ufffd")
      }
    })
  )

  it.scopedLive("CL-105: a file that is always there and is not is an error", () =>
    Effect.gen(function* () {
      const { folder, here } = yield* two
      for (const [name, ...words] of [
        ["events.jsonl", "resume", "coder", "--cwd", "/work"],
        ["messages.jsonl", "history", "coder", "default"],
        ["meta.json", "sessions", "coder"],
        ["updated_at", "resume", "coder", "--cwd", "/work"],
        ["state", "resume", "coder", "--cwd", "/work"]
      ] as const) {
        rmSync(join(folder, name))
        const { code, stderr } = yield* here.ctx(words)
        assert.strictEqual(code, 1)
        assert.include(stderr, `${join(folder, name)} is missing; daybook files rebuild`)
      }
    })
  )

  it.scopedLive("FL-7: a line that is being appended is waited for", () =>
    Effect.gen(function* () {
      const { folder, here } = yield* two
      const file = join(folder, "messages.jsonl")
      const rows = conversation.repeat(2_000)
      writeFileSync(file, rows + answer.slice(0, 20))
      const running = yield* here.startCtx(["history", "coder", "default", "--json"])
      yield* running.until("stdout", (seen) => seen.length > 0)
      appendFileSync(file, answer.slice(20))
      const { code, stdout } = yield* running.ended
      assert.strictEqual(code, 0)
      assert.isTrue(stdout === rows + answer)
    })
  )

  it.scopedLive("SC-4: a session that the reader may not enter is EACCES, with exit code 13", () =>
    Effect.gen(function* () {
      const { here, root } = yield* two
      const isRoot = uid === 0
      chmodSync(here.root, 0o755)
      // Permissions do not bind root: it reads as somebody else.
      chmodSync(join(root, "home", String(uid)), isRoot ? 0o700 : 0o000)
      const options = isRoot ? { uid: 65_534, cwd: here.root } : {}
      const { code, stderr, stdout } = yield* here.ctx(
        ["latest", "coder", "--uid", String(uid), "--root", root],
        options
      )
      chmodSync(join(root, "home", String(uid)), 0o700)
      assert.deepStrictEqual([code, stdout], [13, ""])
      assert.match(stderr, /^ctx: EACCES: you may not read \S+\n$/)
    })
  )

  it.scopedLive("CL-104: what belongs to another user is read as well, where its permissions say so", () =>
    Effect.gen(function* () {
      const { here, root } = yield* two
      for (const path of [here.root, ...everyPath(join(here.root, "data"))]) chmodSync(path, 0o755)
      // Whoever does not own a file may not ask to leave its access time alone.
      const options = uid === 0 ? { uid: 65_534, cwd: here.root } : {}
      const ended = yield* here.ctx(["latest", "coder", "--uid", String(uid), "--root", root], options)
      assert.deepStrictEqual([ended.code, ended.stdout, ended.stderr], [0, "the review\n", ""])
    })
  )

  it.scopedLive("CL-101: sessions of models and of shared spaces lie in folders of their own", () =>
    Effect.gen(function* () {
      const here = yield* place
      const root = join(here.root, "data", "ctx")
      const put = (...segments: ReadonlyArray<string>) =>
        writeSession(join(root, ...segments, "session"), "default", { latest: `${segments.join(" ")}\n` })
      put("home", String(uid), "model", "m1.d")
      put("shared", "team", "agent", "coder")
      put("shared", "team", "model", "m1.d")
      put("home", "7", "agent", "coder")
      const said = (...words: ReadonlyArray<string>) =>
        Effect.map(here.ctx(["latest", ...words]), ({ stdout }) => stdout)
      assert.strictEqual(yield* said("m1", "--model"), `home ${uid} model m1.d\n`)
      assert.strictEqual(yield* said("coder", "--shared=team"), "shared team agent coder\n")
      assert.strictEqual(yield* said("--shared", "team", "--model", "m1"), "shared team model m1.d\n")
      assert.strictEqual(yield* said("coder", "--uid", "7"), "home 7 agent coder\n")
    })
  )

  it.scopedLive("CL-34: a reader of the output that goes away ends ctx quietly", () =>
    Effect.gen(function* () {
      const { folder, here } = yield* two
      writeFileSync(join(folder, "messages.jsonl"), conversation.repeat(20_000))
      const running = yield* here.startCtx(["history", "coder", "default"])
      yield* running.until("stdout", (seen) => seen.length > 0)
      yield* running.closeStdout
      const { code, stderr } = yield* running.ended
      assert.deepStrictEqual([code, stderr], [0, ""])
    })
  )

  it.scopedLive("CL-100: help and version need no files", () =>
    Effect.gen(function* () {
      const here = yield* place
      const texts = yield* Effect.forEach([["--help"], ["-h"], ["help"], [], ["latest", "--help"]], (words) =>
        here.ctx(words)
      )
      for (const { code, stdout } of texts) {
        assert.strictEqual(code, 0)
        assert.match(stdout, /^ctx \d+\.\d+\.\d+: sessions of agents as plain files\n/)
      }
      assert.strictEqual((yield* here.ctx(["--version"])).stdout, (yield* here.run(["--version"])).stdout)
      assert.strictEqual((yield* here.ctx(["latest", "--", "--help"])).code, 2)
    })
  )

  it("CL-180, CL-60: the file of ctx holds neither Effect nor the store", () => {
    const folder = join(dirname(build().bin), "..", "dist", "bundle")
    const [ctx, reader] = ["ctx.js", "reader.js"].map((name) => readFileSync(join(folder, name), "latin1"))
    for (const mark of ["effect/Effect", "better-sqlite3"]) {
      assert.isTrue(reader?.includes(mark), `${mark} marks what it should`)
      assert.isFalse(ctx?.includes(mark), mark)
    }
  })
})
