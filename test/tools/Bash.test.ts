import { execFileSync } from "node:child_process"
import { readdirSync, readlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Scope } from "effect"
import { runShell } from "../../packages/core/src/child/ShellProcess.ts"
import { outputLimits } from "../../packages/core/src/workspace/ToolOutputStore.ts"
import { makeOutputWindow, pathsOutside } from "../../packages/tools/src/Bash.ts"
import { bashLaws } from "./BashContract.ts"
import { makeLifeline } from "./Lifeline.ts"
import { makeWorkbench, textOf } from "./Workbench.ts"
import { lacks } from "../support/Parts.ts"

/** Node's pipes to a process are sockets; the system names each. */
const openSockets = () =>
  readdirSync("/proc/self/fd")
    .map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`)
      } catch {
        return "closed meanwhile"
      }
    })
    .filter((name) => name.startsWith("socket:"))

bashLaws("a process for each command", makeWorkbench)

describe("a process of bash", () => {
  it.scopedLive("TO-61: the signal that ended a command is part of the result", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const killed = yield* bench.succeed("bash", { command: "kill -9 $$" })
      assert.strictEqual(killed.structured["signal"], "SIGKILL")
    })
  )

  it.scopedLive("TO-62: what a command leaves in the background ends with it", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const life = yield* makeLifeline(bench.folder)
      const output = yield* bench.succeed("bash", { command: "exec 3>life; echo alive >&3; sleep 1000 & exit 0" })
      yield* life.ended
      assert.strictEqual(output.structured["exitCode"], 0)
    })
  )

  it.scopedLive.skipIf(lacks("linux"))(
    "TO-62: a process that leaves the group and keeps the output open does not hold up the result",
    () =>
      Effect.gen(function* () {
        const bench = yield* makeWorkbench()
        const life = yield* makeLifeline(bench.folder)
        execFileSync("mkfifo", [join(bench.folder, "gate")])
        const command = "setsid sh -c 'echo $$ > life; exec sleep 60' & cat gate; echo done"
        const fiber = yield* Effect.fork(bench.succeed("bash", { command }))
        const pid = Number(yield* life.first)
        yield* Effect.addFinalizer(() => Effect.sync(() => process.kill(pid, "SIGKILL")))
        writeFileSync(join(bench.folder, "gate"), "go\n")
        assert.strictEqual(textOf(yield* Fiber.join(fiber)), "go\ndone\n")
      })
  )

  it.scopedLive.skipIf(lacks("linux"))(
    "TO-62: both pipes of a command whose output nobody read are given back, though a process keeps both",
    () =>
      Effect.gen(function* () {
        const bench = yield* makeWorkbench()
        const life = yield* makeLifeline(bench.folder)
        const before = openSockets()
        const command = "setsid sh -c 'echo $$ > life; exec sleep 60' & wait"
        const outer = yield* Effect.scope
        const pipes = yield* Effect.scoped(
          Effect.gen(function* () {
            yield* runShell({ command, cwd: bench.folder, env: process.env })
            const pid = Number(yield* life.first)
            yield* Scope.addFinalizer(
              outer,
              Effect.sync(() => process.kill(pid, "SIGKILL"))
            )
            return openSockets().filter((name) => !before.includes(name))
          })
        )
        assert.lengthOf(pipes, 2)
        assert.deepStrictEqual(
          openSockets().filter((name) => pipes.includes(name)),
          []
        )
      })
  )

  for (const [kept, closes] of [
    ["standard output", "2>&-"],
    ["standard error", ">&-"]
  ]) {
    it.scopedLive.skipIf(lacks("linux"))(
      `TO-62: both pipes of a command are given back, though a process that left the group keeps its ${kept}`,
      () =>
        Effect.gen(function* () {
          const bench = yield* makeWorkbench()
          const life = yield* makeLifeline(bench.folder)
          execFileSync("mkfifo", [join(bench.folder, "gate")])
          const before = openSockets()
          const command = `setsid sh -c 'echo $$ > life; exec sleep 60' ${closes} & cat gate`
          const fiber = yield* Effect.fork(bench.succeed("bash", { command }))
          const pid = Number(yield* life.first)
          yield* Effect.addFinalizer(() => Effect.sync(() => process.kill(pid, "SIGKILL")))
          const pipes = openSockets().filter((name) => !before.includes(name))
          assert.lengthOf(pipes, 2)
          writeFileSync(join(bench.folder, "gate"), "go\n")
          yield* Fiber.join(fiber)
          assert.deepStrictEqual(
            openSockets().filter((name) => pipes.includes(name)),
            []
          )
        })
    )
  }
})

describe("advice", () => {
  it.each([
    ["cat /etc/passwd", ["/etc/passwd"]],
    ["cat '/etc/a' \"/etc/b\" </etc/c >/etc/d", ["/etc/a", "/etc/b", "/etc/c", "/etc/d"]],
    ["rm -rf ~/x; ls --dir=/srv", ["~/x", "/srv"]],
    ["cat /work/src/a.ts a/b ./c s/a/b/ http://x/y", []],
    ["cat /work/../etc/x", ["/work/../etc/x"]],
    ["/usr/bin/env node > /dev/null 2>&1", []],
    ["ls /workbench", ["/workbench"]]
  ])("TO-12: %j names %j", (command, expected) => {
    assert.deepStrictEqual(pathsOutside(command, "/work"), expected)
  })
})

describe("a command that cannot be started", () => {
  it.scopedLive("TO-545: says that its working folder is gone, is not a folder, or that the command is too long", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const start = (cwd: string) => Effect.flip(runShell({ command: "true", cwd, env: {} }))
      const gone = join(bench.folder, "gone")
      assert.strictEqual(
        (yield* start(gone)).message,
        `the command could not be started: the working folder ${JSON.stringify(gone)} does not exist any more`
      )
      writeFileSync(join(bench.folder, "file"), "")
      assert.include((yield* start(join(bench.folder, "file"))).message, "is not a folder")
      const long = yield* bench.fail("bash", { command: `echo ${"x".repeat(300_000)}` })
      assert.include(long.message, "it has 300005 bytes, and the system passes fewer to a program")
    })
  )
})

describe("the window of an output", () => {
  it("TO-64: a character that arrives in two pieces is whole, though the other stream speaks in between", () => {
    const window = makeOutputWindow()
    const euro = Buffer.from("\u20ac")
    window.add("stdout", euro.subarray(0, 1))
    window.add("stderr", Buffer.from("!"))
    window.add("stdout", euro.subarray(1))
    assert.strictEqual(window.render(""), "!\u20ac")
  })

  it("TO-64: a flood without a line break is held and shown within the limits", () => {
    const window = makeOutputWindow()
    for (let index = 0; index < 1_000; index++) window.add("stdout", Buffer.from("\u20ac".repeat(10_000)))
    const text = window.render(" More elsewhere.")
    assert.isAtMost(Buffer.byteLength(text), outputLimits.bytes)
    assert.include(text, "of 30000000 bytes")
    assert.include(text, "More elsewhere.")
    assert.notInclude(text, "\uFFFD")
  })
})
