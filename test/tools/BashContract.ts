/** What `bash` guarantees, however its commands run: in a process each, or in the session's live shell. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Queue, type Scope, Struct, TestClock } from "effect"
import { Grace } from "../../packages/core/src/child/ShellProcess.ts"
import type { ToolOutput } from "../../packages/core/src/domain/ToolOutput.ts"
import { Answer } from "../../packages/core/src/permission/PermissionAsker.ts"
import * as LocationFiles from "../../packages/core/src/workspace/LocationFiles.ts"
import { layerNothing, outputLimits } from "../../packages/core/src/workspace/ToolOutputStore.ts"
import { makeBash } from "../../packages/tools/src/Bash.ts"
import { makeLifeline } from "./Lifeline.ts"
import { textOf } from "./LiveBench.ts"
import { allowAll, type makeWorkbench, type Options } from "./Workbench.ts"

/** The laws on the workbench of a variant. */
export const bashLaws = (
  name: string,
  make: (
    options?: Options
  ) => Effect.Effect<Effect.Effect.Success<ReturnType<typeof makeWorkbench>>, never, Scope.Scope>
) =>
  describe(`bash, ${name}`, () => {
    it.scopedLive("TO-61: both streams and the exit code come back; a fault of the command is a result", () =>
      Effect.gen(function* () {
        const bench = yield* make()
        const output = yield* bench.succeed("bash", { command: "echo out; echo err >&2; (exit 3)" })
        assert.strictEqual(output.structured["exitCode"], 3)
        for (const text of ["out\n", "err\n", "[Exit code 3.]"]) assert.include(textOf(output), text)
        const silent = yield* bench.succeed("bash", { command: "true" })
        assert.deepStrictEqual(silent.structured, { exitCode: 0, bytes: 0, warnings: [] })
        assert.strictEqual(textOf(silent), "[No output.]")
      })
    )

    it.scopedLive("TO-61: standard input is closed, and the folder is the Location or one inside it", () =>
      Effect.gen(function* () {
        const bench = yield* make()
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
        const bench = yield* make({
          rules: [{ permission: "bash", resource: "echo *", verdict: "allow" }],
          answer: () => Effect.sync(() => answers.shift() ?? Answer.Unavailable())
        })
        for (const command of ["true", "echo x; true; pwd"]) yield* bench.succeed("bash", { command })
        assert.deepStrictEqual(bench.asked.map(Struct.get("notes")), [[], [`no rule allows "pwd"`]])
      })
    )

    it.scopedLive("TO-62: interruption ends the command with every process that it began", () =>
      Effect.gen(function* () {
        const bench = yield* make()
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
        const bench = yield* make()
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
      }).pipe(Effect.provideService(Grace, 100))
    )

    it.scopedLive("TO-64: of a long output the beginning and the end are shown, and the whole is kept", () =>
      Effect.gen(function* () {
        const bench = yield* make()
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
          const bench = yield* make({ outputs: layerNothing })
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
        const bench = yield* make()
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
        const bench = yield* make()
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
        const bench = yield* make({ rules: [] })
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
          const bench = yield* make({ rules, answer: () => Effect.succeed(Answer.Decline()) })
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
        const bench = yield* make({ rules: [], answer: () => Effect.succeed(Answer.Always()) })
        const command = "for f in *; do echo $f > out; done"
        yield* bench.succeed("bash", { command })
        yield* bench.succeed("bash", { command })
        assert.deepStrictEqual(bench.asked.map(Struct.get("always")), [["for f in \\*; do echo $f > out; done"]])
        yield* bench.succeed("bash", { command: `${command}; pwd` })
        assert.lengthOf(bench.asked, 2)
      })
    )

    it.scopedLive("TO-12: a folder outside the Location needs external_directory, for what the path really is", () =>
      Effect.gen(function* () {
        const bench = yield* make({ rules: [{ permission: "bash", resource: "*", verdict: "allow" }] })
        symlinkSync(bench.outside, join(bench.folder, "link"))
        for (const workdir of ["../outside", bench.outside, "link"]) {
          const error = yield* bench.fail("bash", { command: "touch made", workdir })
          assert.strictEqual(error.type, "permission.denied")
          assert.include(error.message, "external_directory")
          assert.deepStrictEqual(bench.asked.at(-1)?.resources, [bench.outside])
        }
        assert.isFalse(existsSync(join(bench.outside, "made")))
        const free = yield* make()
        const output = yield* free.succeed("bash", { command: "pwd", workdir: "../outside" })
        assert.strictEqual(textOf(output), `${free.outside}\n`)
      })
    )

    it.scopedLive("TO-118, TO-12: absolute paths in a command are a warning to model and person, and no obstacle", () =>
      Effect.gen(function* () {
        const bench = yield* make()
        const output = yield* bench.succeed("bash", { command: "cat /etc/hostname > /dev/null; echo ran" })
        assert.include(textOf(output), "ran\n")
        assert.deepStrictEqual(output.structured["warnings"], [
          "The command names paths outside the Location: /etc/hostname."
        ])
        const asking = yield* make({ rules: allowAll.map((rule) => ({ ...rule, verdict: "ask" as const })) })
        yield* asking.fail("bash", { command: "cat /etc/hostname" })
        assert.include(asking.asked[0]?.title, "/etc/hostname")
      })
    )
  })
