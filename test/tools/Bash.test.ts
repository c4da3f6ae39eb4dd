import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Queue, Scope, TestClock } from "effect"
import { runShell } from "../../packages/core/src/child/ShellProcess.ts"
import type { ToolOutput } from "../../packages/core/src/domain/ToolOutput.ts"
import { Answer } from "../../packages/core/src/permission/PermissionAsker.ts"
import * as LocationFiles from "../../packages/core/src/workspace/LocationFiles.ts"
import { layerNothing, outputLimits } from "../../packages/core/src/workspace/ToolOutputStore.ts"
import { makeBash } from "../../packages/tools/src/Bash.ts"
import { pathsOutside } from "../../packages/tools/src/CommandAdvice.ts"
import { makeOutputWindow } from "../../packages/tools/src/OutputWindow.ts"
import { makeLifeline } from "./Lifeline.ts"
import { allowAll, makeWorkbench, textOf } from "./Workbench.ts"

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

describe("bash", () => {
  it.scopedLive("TO-61: both streams and the exit code come back; a fault of the command is a result", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const output = yield* bench.succeed("bash", { command: "echo out; echo err >&2; exit 3" })
      assert.strictEqual(output.structured["exitCode"], 3)
      for (const text of ["out\n", "err\n", "[Exit code 3.]"]) assert.include(textOf(output), text)
      const silent = yield* bench.succeed("bash", { command: "true" })
      assert.deepStrictEqual(silent.structured, { exitCode: 0, bytes: 0, warnings: [] })
      assert.strictEqual(textOf(silent), "[No output.]")
      const killed = yield* bench.succeed("bash", { command: "kill -9 $$" })
      assert.strictEqual(killed.structured["signal"], "SIGKILL")
    })
  )

  it.scopedLive("TO-61: standard input is closed, and the folder is the Location or one inside it", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      mkdirSync(join(bench.folder, "inner dir"))
      assert.strictEqual(textOf(yield* bench.succeed("bash", { command: "cat; pwd" })), `${bench.folder}\n`)
      for (const workdir of ["inner dir", join(bench.folder, "inner dir")]) {
        const output = yield* bench.succeed("bash", { command: "pwd", workdir })
        assert.strictEqual(textOf(output), `${bench.folder}/inner dir\n`)
      }
      assert.strictEqual((yield* bench.fail("bash", { command: "pwd", workdir: "none" })).type, "file.missing")
      assert.strictEqual((yield* bench.fail("bash", { command: "echo \0" })).type, "tool.execution")
    })
  )

  it.scopedLive("BR-13: the question names the command of a line that no rule or approval allows", () =>
    Effect.gen(function* () {
      const answers = [Answer.Session(), Answer.Once()]
      const bench = yield* makeWorkbench({
        rules: [{ permission: "bash", resource: "echo *", verdict: "allow" }],
        answer: () => Effect.sync(() => answers.shift() ?? Answer.Unavailable())
      })
      for (const command of ["true", "echo x; true; pwd"]) yield* bench.succeed("bash", { command })
      assert.deepStrictEqual(
        bench.asked.map(({ notes }) => notes),
        [[], [`no rule allows "pwd"`]]
      )
    })
  )

  it.scopedLive("TO-62: interruption ends the command with every process that it began", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const life = yield* makeLifeline(bench.folder)
      const command = "sh -c 'exec 3>life; echo alive >&3; sleep 1000' & wait"
      const fiber = yield* Effect.fork(bench.settle("bash", { command }))
      assert.strictEqual(yield* life.first, "alive")
      yield* Fiber.interrupt(fiber)
      yield* life.ended
    })
  )

  it.scoped("TO-62: at its time limit a command that ignores the first signal is killed, its children too", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const life = yield* makeLifeline(bench.folder)
      const command = "echo before; (trap '' TERM; exec 3>life; echo alive >&3; while :; do sleep 1; done) & wait"
      const fiber = yield* Effect.fork(bench.succeed("bash", { command, timeout: 60 }))
      assert.strictEqual(yield* life.first, "alive")
      yield* TestClock.adjust("60 seconds")
      const output = yield* Fiber.join(fiber)
      yield* life.ended
      assert.strictEqual(output.structured["stopped"], "timeout")
      assert.isNull(output.structured["exitCode"])
      assert.include(textOf(output), "before\n")
      assert.include(textOf(output), "Stopped after 60 seconds")
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

  it.scopedLive.skipIf(process.platform !== "linux")(
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

  it.scopedLive.skipIf(process.platform !== "linux")(
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
    it.scopedLive.skipIf(process.platform !== "linux")(
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

  it.scopedLive("TO-64: of a long output the beginning and the end are shown, and the whole is kept", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const output = yield* bench.succeed("bash", { command: "seq 1 300000" })
      const text = textOf(output)
      assert.isTrue(text.startsWith("1\n2\n3\n"))
      assert.isTrue(text.endsWith("299999\n300000\n"))
      assert.isAtMost(Buffer.byteLength(text), outputLimits.bytes)
      assert.isAtMost(text.split("\n").length, outputLimits.lines)
      assert.strictEqual(output.outputPaths?.length, 1)
      const [path = ""] = output.outputPaths ?? []
      assert.include(text, path)
      assert.strictEqual(
        readFileSync(path, "utf8"),
        execFileSync("seq", ["1", "300000"], { encoding: "utf8", maxBuffer: 1e7 })
      )
    })
  )

  it.scopedLive(
    "TO-26: where nothing is kept, a long output is shown as ever and says that the rest was not kept",
    () =>
      Effect.gen(function* () {
        const bench = yield* makeWorkbench({ outputs: layerNothing })
        const output = yield* bench.succeed("bash", { command: "seq 1 300000; echo wrong >&2; exit 3" })
        const text = textOf(output)
        assert.isTrue(text.startsWith("1\n2\n3\n"))
        assert.match(text, /the rest is left out here\. It was not kept\.\]/)
        assert.include(text, "300000\nwrong\n")
        assert.include(text, "Exit code 3.")
        assert.isAtMost(Buffer.byteLength(text), outputLimits.bytes)
        assert.notProperty(output, "outputPaths")
        assert.isFalse(existsSync(bench.outputs))
      })
  )

  it.scopedLive("TO-64: progress shows the output while the command runs", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const updates = yield* Queue.unbounded<ToolOutput>()
      execFileSync("mkfifo", [join(bench.folder, "gate")])
      const fiber = yield* Effect.fork(
        bench.succeed(
          "bash",
          { command: "echo working; cat gate" },
          { progress: (update) => Effect.asVoid(Queue.offer(updates, update)) }
        )
      )
      assert.strictEqual(textOf(yield* Queue.take(updates)), "working\n")
      writeFileSync(join(bench.folder, "gate"), "go\n")
      assert.strictEqual(textOf(yield* Fiber.join(fiber)), "working\ngo\n")
    })
  )

  it.scopedLive("TO-66: a command that prints without end is ended, and what it printed is shown", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const bash = yield* Effect.provide(
        Effect.provide(makeBash({ outputBytes: 1_000_000 }), LocationFiles.layer),
        bench.context
      )
      yield* bench.registry.register([bash])
      const output = yield* bench.succeed("bash", { command: "yes" })
      assert.strictEqual(output.structured["stopped"], "output")
      assert.isTrue(textOf(output).startsWith("y\ny\n"))
      assert.include(textOf(output), "Stopped: it printed more than 1000000 bytes.")
    })
  )

  it.scopedLive("TO-12: a command is run only with permission; nobody to ask means that it is not run", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({ rules: [] })
      const error = yield* bench.fail("bash", { command: "touch made" })
      assert.strictEqual(error.type, "permission.denied")
      assert.isFalse(existsSync(join(bench.folder, "made")))
      assert.deepStrictEqual(bench.asked[0]?.resources, ["touch made"])
    })
  )

  it.scopedLive(
    "BR-1: a command that a rule denies keeps the whole line from running, and a new one is asked about",
    () =>
      Effect.gen(function* () {
        const rule = (resource: string, verdict: "allow" | "deny") => ({ permission: "bash", resource, verdict })
        const rules = [rule("echo *", "allow"), rule("touch *", "deny")]
        const bench = yield* makeWorkbench({ rules, answer: () => Effect.succeed(Answer.Decline()) })
        assert.strictEqual(textOf(yield* bench.succeed("bash", { command: "echo a && (echo b)" })), "a\nb\n")
        const denied = yield* bench.fail("bash", { command: "echo a; env 'touch' x" })
        assert.strictEqual(denied.type, "permission.denied")
        assert.lengthOf(bench.asked, 0)
        const declined = yield* Effect.flip(bench.settle("bash", { command: "echo a; pwd > x" }))
        assert.strictEqual(declined._tag, "ToolDeclined")
        assert.notInclude(readdirSync(bench.folder), "x")
      })
  )

  it.scopedLive("BR-11: an answer of always saves exactly the line, and the line is not asked about again", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({ rules: [], answer: () => Effect.succeed(Answer.Always()) })
      const command = "for f in *; do echo $f > out; done"
      yield* bench.succeed("bash", { command })
      yield* bench.succeed("bash", { command })
      assert.deepStrictEqual(
        bench.asked.map(({ always }) => always),
        [["for f in \\*; do echo $f > out; done"]]
      )
      yield* bench.succeed("bash", { command: `${command}; pwd` })
      assert.lengthOf(bench.asked, 2)
    })
  )

  it.scopedLive("TO-12: a folder outside the Location needs external_directory, for what the path really is", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({ rules: [{ permission: "bash", resource: "*", verdict: "allow" }] })
      symlinkSync(bench.outside, join(bench.folder, "link"))
      for (const workdir of ["../outside", bench.outside, "link"]) {
        const error = yield* bench.fail("bash", { command: "touch made", workdir })
        assert.strictEqual(error.type, "permission.denied")
        assert.include(error.message, "external_directory")
        assert.deepStrictEqual(bench.asked.at(-1)?.resources, [bench.outside])
      }
      assert.isFalse(existsSync(join(bench.outside, "made")))
      const free = yield* makeWorkbench()
      const output = yield* free.succeed("bash", { command: "pwd", workdir: "../outside" })
      assert.strictEqual(textOf(output), `${free.outside}\n`)
    })
  )

  it.scopedLive("TO-118, TO-12: absolute paths in a command are a warning to model and person, and no obstacle", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const output = yield* bench.succeed("bash", { command: "cat /etc/hostname > /dev/null; echo ran" })
      assert.include(textOf(output), "ran\n")
      assert.deepStrictEqual(output.structured["warnings"], [
        "The command names paths outside the Location: /etc/hostname."
      ])
      const asking = yield* makeWorkbench({ rules: allowAll.map((rule) => ({ ...rule, verdict: "ask" as const })) })
      yield* asking.fail("bash", { command: "cat /etc/hostname" })
      assert.include(asking.asked[0]?.title, "/etc/hostname")
    })
  )
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
