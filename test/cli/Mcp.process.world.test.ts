/**
 * `daybook mcp`, as a real process, with a real client of the protocol's SDK. The tests share one server, unless they end it.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js"
import { expect, it, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { connect, type McpClient, rawClient } from "./support/McpClient.ts"
import { gone, runs } from "./support/Gone.ts"
import { jsonLines, type Place, place } from "./support/Process.ts"
import { lacks } from "../support/Parts.ts"

class Server extends Context.Tag("test/Server")<Server, McpClient & { readonly here: Place }>() {}

const secret = `sk-${"ant"}-api03-${"Zz9Yy8".repeat(8)}`

/** A server whose environment has a secret. */
const server = Layer.scoped(
  Server,
  Effect.gen(function* () {
    const here = yield* place
    return { ...(yield* connect(here, { env: { PLANTED_TOKEN: secret } })), here }
  })
)

const opened = Effect.gen(function* () {
  const { call } = yield* Server
  return String((yield* call("session_create", { transport: "local" })).value["session_id"])
})

/** Every byte of every file in the place. */
const bytesOf = ({ root }: Place) =>
  Buffer.concat(
    readdirSync(root, { recursive: true, withFileTypes: true, encoding: "utf8" })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name)))
  )

layer(server, { excludeTestServices: true })("daybook mcp", (it) => {
  it.effect("SL-120: the session of seed 001: state persists, and a result is JSON and the same structure", () =>
    Effect.gen(function* () {
      const { call, client } = yield* Server
      expect((yield* Effect.promise(() => client.listTools())).tools.map(({ name }) => name)).toEqual([
        "session_create",
        "session_exec",
        "session_destroy",
        "session_list",
        "session_output",
        "session_checkpoint",
        "session_checkpoints",
        "session_restore"
      ])
      const created = yield* call("session_create", { transport: "local" })
      expect(JSON.parse(created.text)).toEqual(created.value)
      const id = created.value["session_id"]
      expect(id).toMatch(/^\d+_local$/)
      const run = (command: string) => call("session_exec", { session_id: id, command })
      yield* run("cd /usr && export ENV=prod")
      const { text, value } = yield* run("pwd; echo $ENV; echo wrong >&2; (exit 3)")
      expect(value).toEqual({
        stdout: "/usr\nprod",
        stderr: "wrong",
        exit_code: 3,
        duration_ms: expect.any(Number),
        cwd: "/usr",
        truncated: false
      })
      expect(JSON.parse(text)).toEqual(value)
      const listed = yield* call("session_list", {})
      const open = { session_id: id, transport: "local", idle_secs: 0, busy: 0, cwd: "/usr" }
      expect(JSON.parse(listed.text)).toContainEqual(open)
      expect(listed.value["sessions"]).toEqual(JSON.parse(listed.text))
      expect((yield* call("session_destroy", { session_id: id })).value).toEqual({ destroyed: true })
    })
  )

  it.effect(
    "SL-150: a workspace is kept and brought back, and a shell without one says that it has no checkpoints",
    () =>
      Effect.gen(function* () {
        const { call, here } = yield* Server
        const workspace = join(here.root, "workspace")
        mkdirSync(workspace)
        const options = { workspace, checkpoints: true, auto_snapshot: false }
        const { value } = yield* call("session_create", { transport: "local", cwd: workspace, ...options })
        const session_id = value["session_id"]
        const run = (command: string) => call("session_exec", { session_id, command })
        yield* run("echo one >a")
        const kept = yield* call("session_checkpoint", { session_id, label: "first" })
        yield* run("echo two >a; echo new >b")
        const listed = yield* call("session_checkpoints", { session_id })
        expect(JSON.parse(listed.text)).toMatchObject([
          { id: kept.value["checkpoint_id"], label: "first", kind: "asked" }
        ])
        const restored = yield* call("session_restore", { session_id })
        expect(restored.value).toMatchObject({ files_changed: 2, changed: ["a"], deleted: ["b"] })
        expect((yield* run("cat a; ls")).value).toMatchObject({ stdout: "one\na" })
        const none = yield* call("session_checkpoint", { session_id: yield* opened })
        expect(none).toMatchObject({ isError: true, value: { error: { code: "CheckpointFailed" } } })
      })
  )

  it.effect("SL-61: a truncated output is read in pages by its handle", () =>
    Effect.gen(function* () {
      const { call } = yield* Server
      const session_id = yield* opened
      const result = yield* call("session_exec", { session_id, command: "seq 50000", budget: { max_chars: 100 } })
      expect(result.value["truncated"]).toBe(true)
      const whole = Array.from({ length: 50_000 }, (_, index) => `${index + 1}\n`).join("")
      const first = yield* call("session_output", { output: result.value["output"], limit: 1_000 })
      expect(first.value).toEqual({ text: whole.slice(0, 1_000), next: 1_000, bytes: whole.length })
      const rest = yield* call("session_output", { output: result.value["output"], offset: 1_000, limit: 1_048_576 })
      expect(rest.value["text"]).toBe(whole.slice(1_000))
      const none = yield* call("session_output", { output: "../../etc/passwd" })
      expect([none.isError, none.value]).toMatchObject([true, { error: { code: "OutputNotFound" } }])
    })
  )

  it.effect("SL-121: unknown fields, transports and fields of another transport are refused by name", () =>
    Effect.gen(function* () {
      const { call } = yield* Server
      const before = Number.parseInt(yield* opened, 10)
      for (const [given, message] of [
        [{ transport: "telnet" }, /^transport: expected local, ssh or docker, found "telnet"$/],
        [{ transport: "local", host: "example" }, /^host: is not an option of a local shell/],
        [{ transport: "local", hots: "example" }, /^hots: there is no such key; did you mean "host"/],
        [{ transport: "ssh", host: "example", user: "u" }, /ssh needs a password, a key path or agent: true/],
        [
          { transport: "ssh", host: "-oProxy", user: "u", password: secret },
          /^host: expected a host name or an IP address/
        ],
        [
          { transport: "ssh", host: ":::1", user: "u", password: secret },
          /^host: expected a host name or an IP address/
        ],
        [{ transport: "ssh", host: "::1", user: "u", key_path: "id" }, /^key_path: no folder of keys is configured/],
        [{ transport: "local", output_budget: { grep: { pattern: "(" } } }, /^output_budget\.grep\.pattern: /],
        [{ transport: "docker", container: "--privileged" }, /^container: expected/],
        [{ transport: "local", cwd: "relative" }, /^cwd: expected an absolute path/],
        [{ transport: "ssh", host: "h", user: "u", password: 12345678 }, /^password: expected a text$/],
        [{ transport: "local", deny: ["/bin/rm"] }, /^deny\[0\]: expected the name of a command/],
        [{}, /^transport: /]
      ] as const) {
        const { isError, text, value } = yield* call("session_create", given)
        expect(isError).toBe(true)
        expect(value).toEqual({ error: { code: "InvalidOption", message: text } })
        expect(text).toMatch(message)
        expect(text).not.toContain(secret)
      }
      expect(Number.parseInt(yield* opened, 10)).toBe(before + 1)
    })
  )

  it.effect("SL-122: an unknown id is invalid parameters that name it, and its destruction does nothing", () =>
    Effect.gen(function* () {
      const { call } = yield* Server
      const fault = yield* Effect.flip(call("session_exec", { session_id: "999_local", command: "true" }))
      expect(fault).toMatchObject({ code: -32602, message: expect.stringContaining("999_local") })
      const { isError, value } = yield* call("session_destroy", { session_id: "999_local" })
      expect([isError, value]).toEqual([false, { destroyed: false }])
    })
  )

  it.effect("SL-53: lists of a creation refuse commands, and what the operator refuses stays refused", () =>
    Effect.gen(function* () {
      const { call } = yield* Server
      const { value } = yield* call("session_create", { transport: "local", allow: ["echo", "rm"], deny: ["mv"] })
      const run = (command: string) => call("session_exec", { session_id: value["session_id"], command })
      const blocked = { isError: true, value: { error: { code: "CommandBlocked" } } }
      expect(yield* run("ls")).toMatchObject(blocked)
      expect(yield* run("echo a && mv a b")).toMatchObject(blocked)
      expect(yield* run("rm -rf /")).toMatchObject(blocked)
      expect((yield* run("echo a")).value).toMatchObject({ stdout: "a" })
    })
  )

  it.effect("SL-122: what a model can put right is a result with isError", () =>
    Effect.gen(function* () {
      const { call } = yield* Server
      const session_id = yield* opened
      const run = (options: object) => call("session_exec", { session_id, command: "true", ...options })
      const codes = [
        yield* run({ budget: { grep: { pattern: "(" } } }),
        yield* run({ budget: { max_chars: 0 } }),
        yield* run({ timeout_secs: 0 }),
        yield* run({ command: "a\0b" })
      ].map(({ isError, value }) => [isError, value])
      expect(codes).toMatchObject(codes.map(() => [true, { error: { code: "InvalidOption" } }]))
      expect((yield* run({ command: "exit 7" })).value).toMatchObject({ exit_code: 7, closed: "exited" })
      const closed = yield* run({})
      expect(closed).toMatchObject({ isError: true, value: { error: { code: "ShellClosed" } } })
      expect((yield* call("session_destroy", { session_id })).value).toEqual({ destroyed: false })
    })
  )

  it.effect("SL-123: a cancelled call stops its command and what that started, and the shell stays", () =>
    Effect.gen(function* () {
      const { call } = yield* Server
      const session_id = yield* opened
      const started = yield* Deferred.make<string>()
      const controller = new AbortController()
      const running = yield* Effect.fork(
        call(
          "session_exec",
          { session_id, command: "cd /usr; sleep 4321 & echo $!; wait; cd /" },
          { signal: controller.signal, onMessage: (text) => Deferred.unsafeDone(started, Effect.succeed(text)) }
        )
      )
      // The shell's own line about the job may come first: [1] PID.
      const [, pid = Number.NaN] = (/(\d+)\n/.exec(yield* Deferred.await(started)) ?? []).map(Number)
      expect(runs(pid)).toBe(true)
      controller.abort()
      yield* Effect.flip(Fiber.join(running))
      expect((yield* call("session_exec", { session_id, command: "pwd" })).value).toMatchObject({ stdout: "/usr" })
      expect(runs(pid)).toBe(false)
    })
  )

  it.effect("SL-124: a call with a progress token gets redacted output, and a call without one gets none", () =>
    Effect.gen(function* () {
      const { call, faults } = yield* Server
      const session_id = yield* opened
      const messages: Array<string> = []
      const command = `echo ${secret}; echo "$PLANTED_TOKEN"; echo end`
      yield* call("session_exec", { session_id, command }, { onMessage: (message) => void messages.push(message) })
      expect(messages.join("")).toContain("<redacted>")
      expect(messages.join("")).not.toContain(secret.slice(8, 20))
      yield* call("session_exec", { session_id, command: "seq 1000" })
      // The client reports progress without a known token as a fault.
      expect(faults).toEqual([])
    })
  )

  it.effect("SL-125: commands send log messages after the client set a level, without the command", () =>
    Effect.gen(function* () {
      const { call, client } = yield* Server
      const session_id = yield* opened
      const seen: Array<unknown> = []
      client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void seen.push(params))
      const run = (command: string) => call("session_exec", { session_id, command })
      yield* run("true")
      yield* Effect.promise(() => client.setLoggingLevel("info"))
      yield* run("true")
      yield* run("(exit 9)")
      yield* Effect.promise(() => client.setLoggingLevel("warning"))
      yield* run("true")
      yield* run("false")
      const data = (exit_code: number) => ({ session_id, exit_code, duration_ms: expect.any(Number) })
      expect(seen).toEqual([
        { level: "info", logger: "session_exec", data: data(0) },
        { level: "warning", logger: "session_exec", data: data(9) },
        { level: "warning", logger: "session_exec", data: data(1) }
      ])
    })
  )

  it.effect("SL-128: while 256 calls run or wait, another is refused", () =>
    Effect.gen(function* () {
      const { call } = yield* Server
      const session_id = yield* opened
      const controller = new AbortController()
      const run = (command: string, signal?: AbortSignal) =>
        call("session_exec", { session_id, command }, signal === undefined ? {} : { signal })
      const waiting = yield* Effect.forEach(Array.from({ length: 256 }), () =>
        Effect.fork(run("sleep 4325", controller.signal))
      )
      yield* Effect.yieldNow()
      expect(yield* run("true")).toMatchObject({ isError: true, value: { error: { code: "TooManyCalls" } } })
      controller.abort()
      yield* Effect.forEach(waiting, Fiber.await)
      // A cancelled call counts until its command has stopped.
      yield* Effect.repeat(run("true"), { until: ({ isError }) => !isError })
    })
  )

  it.effect("SL-127: standard output has nothing but the protocol, also while commands print", () =>
    Effect.gen(function* () {
      const { call, faults } = yield* Server
      const session_id = yield* opened
      yield* call("session_exec", { session_id, command: "echo out; echo err >&2; echo > /dev/tty" })
      expect(faults).toEqual([])
    })
  )

  it.effect("SL-25: no secret is in a result, in the database or in a file of outputs", () =>
    Effect.gen(function* () {
      const { call, here } = yield* Server
      const session_id = yield* opened
      const command = `echo ${secret}; env | grep PLANTED; yes "x ${secret}" | head -n 5000; mkdir -p /tmp && cd /tmp`
      const { text, value } = yield* call("session_exec", { session_id, command, budget: { max_chars: 500 } })
      expect(value["output"]).toBeDefined()
      expect(text).toContain("<redacted>")
      const page = yield* call("session_output", { output: value["output"] })
      const bytes = bytesOf(here)
      expect(bytes.includes("session.next.shell.executed")).toBe(true)
      for (const each of [text, page.text, bytes]) expect(each.includes(secret.slice(8, 32))).toBe(false)
    })
  )
})

it.scopedLive("SL-126: the end of standard input closes every shell, and the record says why", () =>
  Effect.gen(function* () {
    const here = yield* place
    // No client of the SDK: that one sends a signal to a server that stays.
    const { end, lines, request } = yield* rawClient(here)
    yield* request(1, "session_create", { transport: "local" })
    yield* request(2, "session_create", { transport: "local" })
    const { result } = yield* request(3, "session_exec", {
      session_id: "2_local",
      command: "setsid sleep 4322 & echo $!"
    })
    expect(yield* end).toEqual({ code: 0, signal: null })
    expect(runs(Number(result.structuredContent["stdout"]))).toBe(false)
    expect(lines()).toHaveLength(3)
    const { stdout } = yield* here.run(["shell", "watch"])
    expect(stdout.match(/closed: shutdown/g)).toHaveLength(2)
    expect(jsonLines((yield* here.run(["sessions", "--json"])).stdout)).toMatchObject([{ title: "daybook mcp" }])
  })
)

it.scopedLive("SL-126: after a kill of the server no process of a shell is left", () =>
  Effect.gen(function* () {
    const here = yield* place
    const { call, pid } = yield* connect(here)
    const { value } = yield* call("session_create", { transport: "local" })
    const ran = yield* call("session_exec", {
      session_id: value["session_id"],
      command: "sleep 4323 & echo $!; setsid sleep 4324 & echo $!; echo $$"
    })
    const pids = String(ran.value["stdout"]).split("\n").map(Number)
    expect(pids).toHaveLength(3)
    process.kill(pid, "SIGKILL")
    yield* Effect.forEach(pids, gone)
  })
)

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  it.scopedLive(`SL-126: ${signal} closes every shell before the process ends`, () =>
    Effect.gen(function* () {
      const here = yield* place
      const { call, client, pid } = yield* connect(here)
      yield* call("session_create", { transport: "local" })
      const ended = yield* Deferred.make<void>()
      // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the client has no listeners
      client.onclose = () => Deferred.unsafeDone(ended, Effect.void)
      process.kill(pid, signal)
      yield* Deferred.await(ended)
      expect((yield* here.run(["shell", "watch"])).stdout).toContain("closed: shutdown")
    })
  )
}

it.scopedLive("CF-53: the operator's settings apply, and a client's arguments do not loosen them", () =>
  Effect.gen(function* () {
    const here = yield* place
    const config = join(here.root, "config.yaml")
    writeFileSync(
      config,
      "environment:\n  bash: [GRANTED]\nshell:\n  limit: 1\n  outputs:\n    enabled: false\n  policy:\n    deny: [hostname]\n"
    )
    const { call } = yield* connect(here, { env: { DAYBOOK_CONFIG: config, GRANTED: "given", OTHER: "kept" } })
    const create = { transport: "local", allow: ["hostname", "seq", "echo"] }
    const { value } = yield* call("session_create", create)
    const limit = yield* call("session_create", create)
    expect(limit).toMatchObject({ isError: true, value: { error: { code: "ShellLimit" } } })
    const run = (command: string) =>
      call("session_exec", { session_id: value["session_id"], command, budget: { max_chars: 9 } })
    expect(yield* run("hostname")).toMatchObject({ isError: true, value: { error: { code: "CommandBlocked" } } })
    expect((yield* run("echo $GRANTED$OTHER")).value).toMatchObject({ stdout: "given" })
    const truncated = (yield* run("seq 100000")).value
    expect([truncated["truncated"], truncated["output"]]).toEqual([true, undefined])
  })
)

it.scopedLive.skipIf(lacks("bubblewrap"))(
  "SL-200: with the configured sandbox a client's shells see the folder of the server, and neither the home nor the database",
  () =>
    Effect.gen(function* () {
      const here = yield* place
      const [config, data] = [join(here.root, "config.yaml"), join(here.cwd, "data")]
      mkdirSync(data)
      writeFileSync(config, "sandbox:\n  mode: on\n")
      writeFileSync(join(here.root, "private"), "of the person")
      const env = { DAYBOOK_CONFIG: config, DAYBOOK_DB: join(data, "daybook.sqlite") }
      const { call } = yield* connect(here, { env })
      const { value } = yield* call("session_create", { transport: "local" })
      const command = `pwd; echo x >made; cat ${here.root}/private; cat data/daybook.sqlite`
      const result = yield* call("session_exec", { session_id: value["session_id"], command })
      expect(result.value).toMatchObject({ stdout: here.cwd, exit_code: 1, sandbox: expect.stringContaining(here.cwd) })
      expect(readdirSync(here.cwd).toSorted()).toEqual(["data", "made"])
      const denied = yield* call("session_create", { transport: "local", cwd: "/etc", workspace: here.root })
      expect(denied).toMatchObject({ isError: true, value: { error: { code: "TransportFailed" } } })
      expect(denied.text).toContain("sandbox.writable")
    })
)

it.scopedLive("SL-129: without a record there is no database", () =>
  Effect.gen(function* () {
    const here = yield* place
    const { call, close } = yield* connect(here, { words: ["--no-record"] })
    const { value } = yield* call("session_create", { transport: "local" })
    yield* call("session_exec", { session_id: value["session_id"], command: "true" })
    yield* close
    expect((yield* here.run(["sessions"])).code).toBe(3)
  })
)

it.scopedLive("SL-128: a message of more than 10 MiB ends the server with a reason, and closes its shells", () =>
  Effect.gen(function* () {
    const here = yield* place
    const { errors, request, send, ended } = yield* rawClient(here)
    yield* request(1, "session_create", { transport: "local" })
    send("x".repeat(11 * 1024 * 1024))
    expect(yield* ended).toEqual({ code: 1, signal: null })
    expect(errors()).toMatch(/^daybook: the client sent a message of more than 10 MiB/)
    expect((yield* here.run(["shell", "watch"])).stdout).toContain("closed: shutdown")
  })
)

it.scopedLive("SL-64: after the removal of the session no byte of what its shells printed is left", () =>
  Effect.gen(function* () {
    const here = yield* place
    const { call, close } = yield* connect(here)
    const { value } = yield* call("session_create", { transport: "local" })
    const command = "yes 'a planted sentence of a shell' | head -n 5000"
    const ran = yield* call("session_exec", { session_id: value["session_id"], command, budget: { max_chars: 200 } })
    expect((yield* call("session_output", { output: ran.value["output"] })).text).toContain("planted sentence")
    yield* close
    const [session] = jsonLines((yield* here.run(["sessions", "--json"])).stdout)
    expect(bytesOf(here).includes("planted sentence")).toBe(true)
    expect((yield* here.run(["remove", String(session?.["id"]), "--yes"])).code).toBe(0)
    expect(bytesOf(here).includes("planted sentence")).toBe(false)
  })
)

it.scopedLive("SL-580: after the removal of the record's session, commands run and are recorded again", () =>
  Effect.gen(function* () {
    const here = yield* place
    const { call } = yield* connect(here)
    const { value } = yield* call("session_create", { transport: "local" })
    const run = (command: string) => call("session_exec", { session_id: value["session_id"], command })
    yield* run("echo before")
    const [session] = jsonLines((yield* here.run(["sessions", "--json"])).stdout)
    expect((yield* here.run(["remove", String(session?.["id"]), "--yes"])).code).toBe(0)
    const after = yield* run("echo after; (exit 3)")
    expect(after.value).toMatchObject({ stdout: "after", exit_code: 3 })
    expect(after.value).not.toHaveProperty("recorded")
    const { stdout } = yield* here.run(["shell", "watch"])
    expect(stdout).toContain("echo after")
    expect(stdout).not.toContain("echo before")
  })
)
