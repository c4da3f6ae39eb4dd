/** `daybook serve` from end to end: real processes, a real socket, a model on the loopback, and `ctx` beside them. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "./support/Bundle.ts"
import { ask, client, untilFile, type Frame } from "./support/Client.ts"
import { held } from "./support/Held.ts"
import { jsonLines, type Options, type Place } from "./support/Process.ts"
import { everyPath, houseOf, uid } from "./support/SessionTree.ts"

beforeAll(() => void build())

/** Starts a server and waits until it says that it is ready. */
const serving = (here: Place, words: ReadonlyArray<string>, options?: Options) =>
  Effect.tap(here.start(["serve", ...words], options), (server) =>
    server.until("stdout", (text) => text.endsWith("ready\n") || text.includes('"ready"'))
  )

const rootOf = (here: Place) => join(here.root, "data", "ctx")
const types = (frames: ReadonlyArray<Frame>) => frames.map(({ type }) => type)
const send = (id: string, input: string, more: Frame = {}) => ({ op: "send", id, input, ...more })

describe("serve", () => {
  it.scopedLive("CL-120: what a client is told is in the files when it is told the end, and ctx reads it there", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const server = yield* serving(here, ["--agent", "build"], { env })
      const socket = join(rootOf(here), "agent", "build.sock")
      assert.strictEqual(yield* server.until("stdout", () => true), `agent build listens at ${socket}\nready\n`)
      const asked = yield* Effect.fork(ask(socket, send("m1", "hello")))
      const turn = yield* model.next
      yield* turn.text("Good ")
      yield* turn.text("day.")
      yield* turn.finish()
      const frames = yield* asked
      assert.deepStrictEqual(
        types(frames).filter((type, at, all) => type !== all[at - 1]),
        ["start", "delta", "message", "done"]
      )
      assert.strictEqual(frames.flatMap(({ text, type }) => (type === "delta" ? [text] : [])).join(""), "Good day.")
      assert.strictEqual(frames.at(-1)?.["status"], "ok")
      assert.strictEqual((yield* here.ctx(["latest", "build"])).stdout, "Good day.\n")
      const rows = jsonLines((yield* here.ctx(["history", "build", "--json"])).stdout)
      assert.deepStrictEqual(rows.map(Struct.get("role")), ["user", "assistant"])
      assert.match(
        (yield* here.ctx(["history", "build"])).stdout,
        /^## user .*\n\nhello\n\n## assistant .*\n\nGood day\.\n\n$/
      )
      const resumed = jsonLines((yield* here.ctx(["resume", "build", "--cwd", "/", "--json"])).stdout)[0]
      assert.deepStrictEqual([resumed?.["session"], resumed?.["state"], resumed?.["cwd"]], ["default", "done", "/"])
      const after = yield* ask(socket, { op: "resume", session: "default", after: resumed?.["after"] })
      assert.deepStrictEqual(after, [])
      yield* server.signal("SIGTERM")
      const { code, stderr } = yield* server.ended
      assert.strictEqual(code, 0)
      assert.notMatch(stderr, / (?:warning|error) /)
      assert.isFalse(existsSync(socket))
    })
  )

  it.scopedLive("FR-8: the same send after a restart has the same run, and asks no model", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const socket = join(rootOf(here), "agent", "build.sock")
      const first = yield* serving(here, ["--agent", "build"], { env })
      const asked = yield* Effect.fork(ask(socket, send("m1", "hello")))
      const turn = yield* model.next
      yield* turn.text("Once.")
      yield* turn.finish()
      const before = yield* asked
      yield* first.signal("SIGINT")
      assert.strictEqual((yield* first.ended).code, 0)
      yield* serving(here, ["--agent", "build"], { env })
      const again = yield* ask(socket, send("m1", "hello"))
      assert.deepStrictEqual(
        types(again).filter((type) => type !== "delta"),
        ["start", "message", "done"]
      )
      assert.strictEqual(again.at(-1)?.["run"], before.at(-1)?.["run"])
      const other = yield* ask(socket, send("m1", "something else"))
      assert.deepStrictEqual(
        other.map(({ code, type }) => [type, code]),
        [["error", "EINVAL"]]
      )
      assert.strictEqual(jsonLines((yield* here.ctx(["history", "build", "--json"])).stdout).length, 2)
    })
  )

  it.scopedLive("CL-123: a signal interrupts what runs, and the files say so when the process has ended", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const server = yield* serving(here, ["--agent", "build", "--drain", "0"], { env })
      const asking = yield* client(join(rootOf(here), "agent", "build.sock"))
      yield* asking.write(`${JSON.stringify(send("m1", "hello"))}\n`)
      const turn = yield* model.next
      yield* turn.text("Half")
      yield* asking.until((frames) => types(frames).includes("delta"))
      const folder = join(houseOf(rootOf(here), "build"), "default")
      // Whoever looks at the file meanwhile sees the run.
      yield* untilFile(join(folder, "state"), (text) => text === "active\n")
      const rows = jsonLines(readFileSync(join(folder, "events.jsonl"), "utf8"))
      assert.strictEqual(rows.at(-1)?.["type"], "start")
      yield* server.signal("SIGTERM")
      assert.strictEqual((yield* server.ended).code, 0)
      assert.strictEqual(readFileSync(join(folder, "state"), "utf8"), "idle\n")
      const last = jsonLines(readFileSync(join(folder, "events.jsonl"), "utf8")).at(-1)
      assert.deepStrictEqual([last?.["type"], last?.["status"]], ["done", "cancelled"])
      assert.strictEqual((yield* here.run(["files", "verify"])).code, 0)
    })
  )

  it.scopedLive("FL-10: a run that was killed with its server is over when it is served again", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const first = yield* serving(here, ["--agent", "build"], { env })
      const socket = join(rootOf(here), "agent", "build.sock")
      const asking = yield* client(socket)
      yield* asking.write(`${JSON.stringify(send("m1", "hello"))}\n`)
      yield* model.next
      yield* asking.until((frames) => types(frames).includes("start"))
      yield* first.signal("SIGKILL")
      yield* first.ended
      yield* serving(here, ["--agent", "build"], { env })
      const folder = join(houseOf(rootOf(here), "build"), "default")
      assert.strictEqual(readFileSync(join(folder, "state"), "utf8"), "error\n")
      const [error, done] = jsonLines(readFileSync(join(folder, "events.jsonl"), "utf8")).slice(-2)
      assert.deepStrictEqual([error?.["code"], done?.["status"]], ["EHOSTDOWN", "error"])
      const again = yield* ask(socket, send("m1", "hello"))
      assert.deepStrictEqual(types(again), ["start", "error", "done"])
    })
  )

  /** The command refuses the words, and has made nothing. */
  const refuses = (here: Place, options: Options, words: ReadonlyArray<string>, code: number, says: string) =>
    Effect.gen(function* () {
      const ended = yield* here.run(["serve", ...words], options)
      assert.deepStrictEqual([words, ended.code, ended.stdout], [words, code, ""])
      assert.include(ended.stderr, says)
      assert.isFalse(existsSync(join(here.root, "data")))
    })

  it.scopedLive("CL-121: a line that names nobody, or what is no name, is refused before anything is made", () =>
    Effect.gen(function* () {
      const { env, here } = yield* held
      yield* refuses(here, { env }, [], 2, "nothing to serve")
      yield* refuses(here, { env }, ["build"], 2, "takes no words")
      yield* refuses(here, { env }, ["--agent", "../x"], 2, "--agent: expected 1-64 letters")
      yield* refuses(here, { env }, ["--model", "openai-compatible/held=a/b"], 2, "--model: expected 1-64 letters")
      yield* refuses(here, { env }, ["--agent", "build", "--chroot", "nowhere"], 2, "--chroot")
    })
  )

  it.scopedLive("CL-121: agents and models are looked for before anything is made", () =>
    Effect.gen(function* () {
      const { env, here } = yield* held
      mkdirSync(join(here.root, ".config", "daybook"), { recursive: true })
      writeFileSync(
        join(here.root, ".config", "daybook", "config.yaml"),
        "agents:\n  helper:\n    mode: subagent\n    prompt: Help.\n"
      )
      yield* refuses(here, { env }, ["--agent", "nobody"], 3, 'there is no agent "nobody"')
      yield* refuses(here, { env }, ["--agent", "helper"], 2, "only works for other agents")
      yield* refuses(here, { env }, ["--model", "nowhere/m"], 5, "nowhere")
      yield* refuses(
        here,
        { env },
        ["--agent", "build", "--agent", "build"],
        2,
        'two agents are to be served as "build"'
      )
    })
  )

  it.scopedLive("CL-122: --json tells that it is ready in one object; a root has one server", () =>
    Effect.gen(function* () {
      const { env, here } = yield* held
      const root = join(here.root, "r")
      const server = yield* serving(
        here,
        ["--agent", "build", "--model", "openai-compatible/held=m1", "--root", root, "--json"],
        { env }
      )
      assert.deepStrictEqual(jsonLines(yield* server.until("stdout", (text) => text.endsWith("\n"))), [
        {
          type: "ready",
          root,
          sockets: [
            { kind: "agent", name: "build", path: join(root, "agent", "build.sock") },
            { kind: "model", name: "m1", path: join(root, "model", "openai-compatible", "m1.sock") }
          ]
        }
      ])
      const second = yield* here.run(["serve", "--agent", "plan", "--root", root], { env })
      assert.deepStrictEqual([second.code, second.stdout], [4, ""])
      assert.include(second.stderr, root)
    })
  )

  it.scopedLive("CL-113: beside a server files can be verified, and by nobody else written", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      yield* serving(here, ["--agent", "build"], { env })
      const asked = yield* Effect.fork(ask(join(rootOf(here), "agent", "build.sock"), send("m1", "hello")))
      const turn = yield* model.next
      yield* turn.text("Hi.")
      yield* turn.finish()
      yield* asked
      const verified = yield* here.run(["files", "verify"])
      assert.deepStrictEqual([verified.code, verified.stdout], [0, ""])
      for (const action of ["export", "rebuild"]) {
        const refused = yield* here.run(["files", action])
        assert.deepStrictEqual([refused.code, refused.stdout], [4, ""])
        assert.include(refused.stderr, "another process keeps the files")
      }
    })
  )

  it.scopedLive("CL-125: agents work where --chroot says, which is / to them", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      mkdirSync(join(here.cwd, "inner"))
      writeFileSync(join(here.cwd, "inner", "notes.txt"), "the notes")
      yield* serving(here, ["--agent", "build", "--chroot", "."], { env })
      const socket = join(rootOf(here), "agent", "build.sock")
      const asked = yield* Effect.fork(ask(socket, send("m1", "What does @notes.txt say?", { cwd: "/inner" })))
      const turn = yield* model.next
      assert.include(JSON.stringify(turn.body.messages), "the notes")
      yield* turn.text("Read.")
      yield* turn.finish()
      assert.strictEqual((yield* asked).at(-1)?.["status"], "ok")
      assert.match((yield* here.ctx(["sessions", "build"])).stdout, / {2}done {4}default {2}\/inner\b/)
      const outside = yield* ask(socket, send("m2", "x", { cwd: here.root }))
      assert.deepStrictEqual(outside[0]?.["code"], "ENOENT")
    })
  )

  it.scopedLive("SC-1: a session of a shared space is kept there, for whom the configuration lets in", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      mkdirSync(join(here.root, ".config", "daybook"), { recursive: true })
      writeFileSync(
        join(here.root, ".config", "daybook", "config.yaml"),
        "shared:\n  team:\n    agents: [build]\n    read: everyone\n  others:\n    agents: [plan]\n    read: owner\n"
      )
      const root = join(here.root, "r")
      yield* serving(here, ["--agent", "build", "--root", root], { env })
      const socket = join(root, "agent", "build.sock")
      const asked = yield* Effect.fork(ask(socket, send("m1", "hello", { scope: "shared", shared: "team" })))
      const turn = yield* model.next
      yield* turn.text("To all.")
      yield* turn.finish()
      assert.strictEqual((yield* asked).at(-1)?.["status"], "ok")
      chmodSync(here.root, 0o755)
      const stranger = uid === 0 ? { uid: 65_534, cwd: here.root } : {}
      const read = (...words: ReadonlyArray<string>) =>
        here.ctx(["latest", "build", "--root", root, ...words], stranger)
      assert.strictEqual((yield* read("--shared", "team")).stdout, "To all.\n")
      assert.strictEqual((yield* here.ctx(["latest", "build", "--root", root])).code, 1)
      if (uid === 0) assert.strictEqual((yield* read("--uid", "0")).code, 13)
      const refused = yield* ask(socket, send("m2", "hello", { scope: "shared", shared: "others" }))
      assert.strictEqual(refused[0]?.["code"], "EACCES")
    })
  )

  it.scopedLive("CL-120: an agent is served under the name that its clients know", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      yield* serving(here, ["--agent", "build=coder"], { env })
      const asked = yield* Effect.fork(ask(join(rootOf(here), "agent", "coder.sock"), send("m1", "hello")))
      const turn = yield* model.next
      yield* turn.text("Hi.")
      yield* turn.finish()
      assert.strictEqual((yield* asked).at(-1)?.["status"], "ok")
      assert.strictEqual((yield* here.ctx(["latest", "coder"])).stdout, "Hi.\n")
      const folder = join(rootOf(here), "home", String(uid), "agent", "coder", "session", "default")
      const meta: unknown = JSON.parse(readFileSync(join(folder, "meta.json"), "utf8"))
      assert.deepInclude(meta, { name: "coder", agent: "build" })
    })
  )

  it.scopedLive("CL-10: the other verbs find a session of the socket by its agent and its name", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      yield* serving(here, ["--agent", "build=coder"], { env })
      const asked = yield* Effect.fork(ask(join(rootOf(here), "agent", "coder.sock"), send("m1", "hello")))
      const turn = yield* model.next
      yield* turn.text("Hi.")
      yield* turn.finish()
      assert.strictEqual((yield* asked).at(-1)?.["status"], "ok")
      const shown = yield* here.run(["messages", "coder/default"])
      assert.deepStrictEqual([shown.code, shown.stderr], [0, ""])
      assert.include(shown.stdout, "hello")
      const other = join(here.root, "other")
      const exported = yield* here.run(["files", "export", "--root", other, "--session", "coder/default"])
      assert.strictEqual(exported.code, 0, exported.stderr)
      const latest = join(other, "home", String(uid), "agent", "coder", "session", "default", "latest.md")
      assert.strictEqual(readFileSync(latest, "utf8"), "Hi.\n")
      for (const name of ["coder/none", "build/default", "coder/default/x", "coder/.."]) {
        assert.strictEqual((yield* here.run(["messages", name])).code, 3, name)
      }
    })
  )

  it.scopedLive("CL-120: a model by itself is served under its alias, and has no tools", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      yield* serving(here, ["--model", "openai-compatible/held=m1"], { env })
      const socket = join(rootOf(here), "model", "openai-compatible", "m1.sock")
      const asked = yield* Effect.fork(ask(socket, send("m1", "hello", { session: "chat" })))
      const turn = yield* model.next
      assert.isUndefined(turn.body.tools)
      yield* turn.text("Hi.")
      yield* turn.finish()
      assert.strictEqual((yield* asked).at(-1)?.["status"], "ok")
      assert.strictEqual((yield* here.ctx(["latest", "m1", "--model"])).stdout, "Hi.\n")
    })
  )

  it.scopedLive("SC-2: a temp session leaves nothing on disk", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const server = yield* serving(here, ["--agent", "build"], { env })
      const socket = join(rootOf(here), "agent", "build.sock")
      const asking = yield* client(socket)
      yield* asking.write(`${JSON.stringify(send("m1", "a whisper", { scope: "temp" }))}\n`)
      const turn = yield* model.next
      yield* turn.text("an echo")
      yield* turn.finish()
      yield* asking.until((frames) => types(frames).includes("done"))
      yield* asking.end
      yield* asking.closed
      yield* server.signal("SIGTERM")
      yield* server.ended
      for (const path of everyPath(here.root)) {
        if (lstatSync(path).isFile()) assert.notMatch(readFileSync(path, "latin1"), /a whisper|an echo/, path)
      }
      assert.strictEqual((yield* here.ctx(["sessions", "build"])).code, 1)
    })
  )

  it.scopedLive("CL-124: without a terminal a tool that needs a permission is refused, and the run goes on", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      yield* serving(here, ["--agent", "build"], { env })
      const asked = yield* Effect.fork(ask(join(rootOf(here), "agent", "build.sock"), send("m1", "Run it.")))
      const turn = yield* model.next
      yield* turn.toolCall("c1", "bash", { command: "touch made", description: "make it" })
      yield* turn.finish("tool_calls")
      const next = yield* model.next
      assert.include(JSON.stringify(next.body.messages), "permission")
      yield* next.text("Then not.")
      yield* next.finish()
      assert.strictEqual((yield* asked).at(-1)?.["status"], "ok")
      const shown = (yield* here.ctx(["history", "build"])).stdout
      assert.match(shown, /→ bash \{"command":"touch made"[^\n]*\n\n! bash /)
    })
  )
})
