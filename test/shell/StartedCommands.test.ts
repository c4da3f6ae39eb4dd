import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { describe } from "vitest"
import { local, withShells } from "./support/LocalShells.ts"

describe.concurrent("Started commands", () => {
  it.live("SL-72: a started command is followed, and collected by its handle when it has ended", () =>
    withShells({}, ({ background, create, exec }) =>
      Effect.gen(function* () {
        const id = yield* create({ target: local })
        const fifo = (yield* exec(id, "f=$(mktemp -u); mkfifo $f; echo $f")).stdout
        const other = yield* create({ target: local })
        const started = yield* Deferred.make<void>()
        const onText = () => Deferred.unsafeDone(started, Effect.void)
        const handle = yield* background.start(id, `echo first; read -r x <$f; echo second; (exit 3)`, { onText })
        yield* Deferred.await(started)
        expect(yield* background.collect(handle)).toEqual({ stdout: "first\n", stderr: "" })
        yield* exec(other, `echo >${fifo}`)
        const { result, stdout } = yield* background.collect(handle, { wait: "30 seconds" })
        expect(stdout).toBe("second\n")
        expect(result).toMatchObject({ stdout: "first\nsecond", exit_code: 3 })
        expect((yield* background.collect(handle)).result).toEqual(result)
      })
    )
  )

  it.live("SL-74: a command that is stopped while it waits for its turn ends at once, and never runs", () =>
    withShells({}, ({ background, create, exec }, facts) =>
      Effect.gen(function* () {
        const id = yield* create({ target: local })
        const first = yield* background.start(id, "sleep 1000.74")
        const second = yield* background.start(id, "echo wrong")
        yield* background.stop(second)
        const { result, stdout } = yield* background.collect(second, { wait: "30 seconds" })
        expect([stdout, result]).toMatchObject(["", { exit_code: 130, stdout: "", duration_ms: 0, cwd: "/tmp" }])
        expect((yield* background.collect(first)).result).toBeUndefined()
        yield* background.stop(first)
        expect((yield* exec(id, "echo here")).stdout).toBe("here")
        expect(
          facts.flatMap(({ data, type }) => (type.endsWith("executed") && "command" in data ? [data.command] : []))
        ).toEqual(["sleep 1000.74", "echo here"])
      })
    )
  )

  it.live("SL-73: a started command reads what is sent to it until the end", () =>
    withShells({}, ({ background, create }) =>
      Effect.gen(function* () {
        const id = yield* create({ target: local })
        const handle = yield* background.start(id, "while read -r x; do echo got $x; done; echo end", {
          interactive: true
        })
        yield* background.send(handle, "a\n")
        yield* background.send(handle, "b\n", { end: true })
        const { result } = yield* background.collect(handle, { wait: "30 seconds" })
        expect(result?.stdout).toBe("got a\ngot b\nend")
      })
    )
  )

  it.live("SL-74: a started command is stopped on request, with exit code 130, and the shell stays", () =>
    withShells({}, ({ background, create, exec }) =>
      Effect.gen(function* () {
        const id = yield* create({ target: local })
        const started = yield* Deferred.make<void>()
        const onText = () => Deferred.unsafeDone(started, Effect.void)
        const handle = yield* background.start(id, "echo part; sleep 60; echo never", { onText })
        yield* Deferred.await(started)
        yield* background.stop(handle)
        const { result } = yield* background.collect(handle, { wait: "30 seconds" })
        expect(result).toMatchObject({ stdout: "part", exit_code: 130 })
        expect(result?.timed_out).toBeUndefined()
        expect((yield* exec(id, "echo hi")).stdout).toBe("hi")
      })
    )
  )

  it.live("SL-75: a refused command fails its start, and an unknown handle says so", () =>
    withShells({ policy: { deny: ["curl"] } }, ({ background, create }) =>
      Effect.gen(function* () {
        const id = yield* create({ target: local })
        expect(yield* Effect.flip(background.start(id, "curl x"))).toMatchObject({ _tag: "CommandBlocked" })
        expect(yield* Effect.flip(background.start("9_local", "true"))).toMatchObject({ _tag: "ShellNotFound" })
        expect(yield* Effect.flip(background.collect("1_local.command-9"))).toMatchObject({ _tag: "CommandNotFound" })
      })
    )
  )

  it.live("SL-76: an interrupted command is recorded with what it printed", () =>
    withShells({}, (shells, facts) =>
      Effect.gen(function* () {
        const id = yield* shells.create({ target: local })
        const started = yield* Deferred.make<void>()
        const onText = () => Deferred.unsafeDone(started, Effect.void)
        const fiber = yield* Effect.fork(shells.exec(id, "echo part; sleep 60", { onText }))
        yield* Deferred.await(started)
        yield* Fiber.interrupt(fiber)
        const last = { command: "echo part; sleep 60", stdout: "part", exitCode: 130 }
        expect(facts.at(-1)).toMatchObject({ type: "session.next.shell.executed", data: last })
      })
    )
  )
})
