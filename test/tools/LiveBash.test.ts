/** `bash` in the session's live shell: what stays from call to call, what ends the shell, and what is recorded. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Queue, Scope, Stream, TestClock } from "effect"
import type { ToolOutput } from "../../packages/core/src/domain/ToolOutput.ts"
import { Answer } from "../../packages/core/src/permission/PermissionAsker.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import type { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as SessionShells from "../../packages/shell/src/agent/SessionShells.ts"
import { isShellEvent } from "../../packages/shell/src/record/ShellList.ts"
import { bashLaws } from "./BashContract.ts"
import { makeLifeline } from "./Lifeline.ts"
import { makeLiveBench } from "./LiveBench.ts"
import { agentWith, allowAll, sessionID, temporaryFolder, textOf } from "./Workbench.ts"

bashLaws("a live shell", (options) => makeLiveBench(options))

const notice = "This is a new shell"

/** What shells of the session did, from its log. */
const story = (log: EventLog["Type"], id = sessionID) =>
  Effect.map(log.read({ sessionID: id }), ({ events }) =>
    events.filter(isShellEvent).map(({ data, type }) => ({ type: type.replace("session.next.shell.", ""), data }))
  )

/** Starts a process of the shell that holds the folder's lifeline. */
const hold = "sh -c 'exec 3>life; echo alive >&3; exec sleep 1000' &"

const other = SessionID.make("ses_other")

describe("the live shell of bash", () => {
  it.scopedLive("TO-130: folder, variables, functions and jobs of a call are there for the next one", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      mkdirSync(join(bench.folder, "inner"))
      const say = (command: string) => Effect.map(bench.succeed("bash", { command }), textOf)
      yield* say("cd inner; export A=kept; b=also; f() { echo $A $b; }")
      assert.strictEqual(yield* say("f; pwd"), `kept also\n${bench.folder}/inner\n`)
      const server =
        "require('http').createServer((q, r) => r.end('served ' + q.url)).listen(0, '127.0.0.1', " +
        "function () { console.log(this.address().port) })"
      yield* say(`mkfifo port; node -e "${server}" > port & read p < port; echo $p`)
      assert.strictEqual(
        yield* say(`node -e "fetch('http://127.0.0.1:$p/x').then((r) => r.text()).then(console.log)"`),
        "served /x\n"
      )
    })
  )

  it.scopedLive("TO-130: the model is told how its commands run, by its agent", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      const described = (bash: "live" | "process") =>
        Effect.map(bench.registry.materialize({ ...bench.agent, bash }), ({ definitions }) =>
          String(definitions.find(({ name }) => name === "bash")?.description)
        )
      assert.include(yield* described("live"), "the session's live shell")
      assert.notInclude(yield* described("process"), "live shell")
    })
  )

  it.scopedLive("TO-131: a `workdir` is for its command alone, and the shell keeps its own folder", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      mkdirSync(join(bench.folder, "a/b"), { recursive: true })
      const run = (command: string, workdir?: string) =>
        bench.succeed("bash", { command, ...(workdir === undefined ? {} : { workdir }) })
      const moved = yield* run("cd a")
      assert.strictEqual(moved.structured["cwd"], join(bench.folder, "a"))
      assert.include(textOf(moved), `The shell is now in ${join(bench.folder, "a")}.`)
      const there = yield* run("pwd; cd ..", "a/b")
      assert.strictEqual(textOf(there), `${bench.folder}/a/b\n`)
      assert.notProperty(there.structured, "cwd")
      assert.strictEqual(textOf(yield* run("pwd")), `${bench.folder}/a\n`)
    })
  )

  it.scopedLive("TO-131: a shell whose folder is gone runs its next command in the Location", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      mkdirSync(join(bench.folder, "gone"))
      yield* bench.succeed("bash", { command: "cd gone" })
      rmSync(join(bench.folder, "gone"), { recursive: true })
      const output = yield* bench.succeed("bash", { command: "pwd" })
      assert.include(textOf(output), `${bench.folder}\n`)
      assert.strictEqual(output.structured["cwd"], bench.folder)
    })
  )

  it.scopedLive("TO-132: a command in a folder outside, where an earlier one went, needs external_directory", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench({ rules: [{ permission: "bash", resource: "*", verdict: "allow" }] })
      yield* bench.succeed("bash", { command: `cd ${bench.outside}` })
      const refused = yield* bench.fail("bash", { command: "touch made" })
      assert.include(refused.message, "external_directory")
      assert.deepStrictEqual(bench.asked[0]?.resources, [bench.outside])
      assert.isFalse(existsSync(join(bench.outside, "made")))
      yield* bench.succeed("bash", { command: "pwd", workdir: "." })
    })
  )

  it.scopedLive("TO-580: a shell that left the Location returns with the line that the refusal names", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench({ rules: [{ permission: "bash", resource: "*", verdict: "allow" }] })
      const run = (command: string) => bench.succeed("bash", { command })
      const refused = (command: string) => bench.fail("bash", { command })
      yield* run('export A=kept; cd() { touch made; builtin cd "$@"; }')
      yield* run(`cd ${bench.outside}`)
      const { message } = yield* refused("pwd")
      const back = `cd '${bench.folder}'`
      assert.isTrue(message.endsWith(`outside the Location; to return, run: ${back}`), message)
      for (const line of [
        `${back} && pwd`,
        `${back} >made`,
        `x=$(touch made) ${back}`,
        `cd '${bench.folder}' $(touch made)`
      ]) {
        yield* refused(line)
      }
      yield* run(back)
      // Even a function of that name ran nothing outside.
      assert.isFalse(existsSync(join(bench.outside, "made")))
      assert.strictEqual(textOf(yield* run("pwd; echo $A")), `${bench.folder}\nkept\n`)
    })
  )

  it.scopedLive("TO-133: a new shell says that it is new, and why the one before is gone", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      assert.include(textOf(yield* bench.succeed("bash", { command: "export x=1" })), notice)
      const ended = yield* bench.succeed("bash", { command: "echo bye >&2; exit 3" })
      assert.strictEqual(ended.structured["exitCode"], 3)
      assert.strictEqual(
        textOf(ended),
        "bye\n\n[Exit code 3. The shell has closed (it ended); the next call gets a new one.]"
      )
      const next = textOf(yield* bench.succeed("bash", { command: "echo [$x]" }))
      assert.include(next, "[]\n")
      assert.include(next, `${notice} (the one before: it ended)`)
    })
  )

  it.scopedLive("TO-134: an interrupted command ends with what it started, and the shell and earlier jobs stay", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      const updates = yield* Queue.unbounded<ToolOutput>()
      yield* bench.succeed("bash", { command: "export x=kept; sleep 1000 & job=$!" })
      const fiber = yield* Effect.fork(
        bench.settle(
          "bash",
          { command: "echo started; sleep 1000; echo never" },
          { progress: (update) => Effect.asVoid(Queue.offer(updates, update)) }
        )
      )
      assert.include(textOf(yield* Queue.take(updates)), "started")
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(
        textOf(yield* bench.succeed("bash", { command: "echo $x; kill -0 $job && echo runs" })),
        "kept\nruns\n"
      )
      assert.deepInclude((yield* story(bench.log))[2]?.data, {
        exitCode: 130,
        command: "echo started; sleep 1000; echo never"
      })
    })
  )

  it.scopedLive("TO-134: the time limit stops the command and keeps the shell", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      yield* bench.succeed("bash", { command: "export x=kept" })
      const output = yield* bench.succeed("bash", { command: "echo before; sleep 1000; echo never", timeout: 1 })
      assert.strictEqual(output.structured["stopped"], "timeout")
      assert.match(textOf(output), /^before\n\n\[Stopped after 1 seconds/)
      assert.strictEqual(textOf(yield* bench.succeed("bash", { command: "echo $x" })), "kept\n")
    })
  )

  it.scopedLive("TO-135: a refused command has no effect on the shell, and opens none", () =>
    Effect.gen(function* () {
      const rule = (resource: string, verdict: "allow" | "deny") => ({ permission: "bash", resource, verdict })
      const bench = yield* makeLiveBench({ rules: [rule("*", "allow"), rule("touch *", "deny")] })
      mkdirSync(join(bench.folder, "a"))
      yield* bench.fail("bash", { command: "cd a; touch made" })
      assert.deepStrictEqual(yield* story(bench.log), [])
      yield* bench.succeed("bash", { command: "true" })
      yield* bench.fail("bash", { command: "cd a; touch made" })
      assert.strictEqual(textOf(yield* bench.succeed("bash", { command: "pwd" })), `${bench.folder}\n`)
      assert.deepStrictEqual(readdirSync(join(bench.folder, "a")), [])
    })
  )

  it.scopedLive("TO-136: calls of one turn run one after the other, in their order", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      const outputs = yield* Effect.all(
        ["export x=a; sleep 0.2", "export x=${x}b", "export x=${x}c", "echo $x"].map((command) =>
          bench.succeed("bash", { command })
        ),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(textOf(outputs[3] ?? { structured: {}, content: [] }), "abc\n")
    })
  )

  it.scopedLive("TO-137: what jobs printed between commands is in the next result", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      const life = yield* makeLifeline(bench.folder)
      yield* bench.succeed("bash", { command: "mkfifo gate; (read -r _ < gate; echo late; exec 3>life) &" })
      writeFileSync(join(bench.folder, "gate"), "go\n")
      yield* life.ended
      const output = yield* bench.succeed("bash", { command: "echo now" })
      assert.strictEqual(textOf(output), "[Printed by background jobs before:]\nlate\n\nnow\n")
      assert.deepStrictEqual(output.structured, { exitCode: 0, bytes: 4, warnings: [] })
    })
  )

  it.scopedLive("SL-230: two sessions have shells of their own", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      yield* bench.log.append(other, [draft("session.created", { location: { directory: bench.folder } })])
      yield* bench.succeed("bash", { command: "export x=one" })
      const output = yield* bench.succeed("bash", { command: "echo [$x]; x=two" }, { sessionID: other })
      assert.include(textOf(output), "[]\n")
      assert.strictEqual(textOf(yield* bench.succeed("bash", { command: "echo $x" })), "one\n")
      const ids = [...(yield* story(bench.log)), ...(yield* story(bench.log, other))].map(({ data }) => data.shellID)
      assert.strictEqual(new Set(ids).size, 2)
    })
  )

  it.scopedLive("SL-231: the session's removal ends its shell with everything in it", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      const life = yield* makeLifeline(bench.folder)
      yield* bench.succeed("bash", { command: hold })
      assert.strictEqual(yield* life.first, "alive")
      yield* bench.log.remove(sessionID)
      yield* life.ended
    })
  )

  it.scopedLive("SL-231: the end of the runtime's scope ends the shell, and records it", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const bench = yield* Scope.extend(makeLiveBench(), scope)
      const life = yield* makeLifeline(bench.folder)
      yield* bench.succeed("bash", { command: hold })
      assert.strictEqual(yield* life.first, "alive")
      yield* Scope.close(scope, Exit.void)
      yield* life.ended
    })
  )

  it.scopedLive("SL-232: a session that moves gets a new shell in its new folder, and the old one ends", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      const life = yield* makeLifeline(bench.folder)
      yield* bench.succeed("bash", { command: hold })
      assert.strictEqual(yield* life.first, "alive")
      const directory = yield* temporaryFolder
      yield* bench.log.append(sessionID, [draft("session.next.moved", { location: { directory } })])
      yield* life.ended
    })
  )

  it.scopedLive("SL-232: another agent gets a new shell, and one that has none leaves it alone", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      yield* bench.succeed("bash", { command: "export x=kept" })
      const apart = textOf(yield* bench.succeed("bash", { command: "echo [$x]" }, { agent: agentWith(allowAll) }))
      assert.strictEqual(apart, "[]\n")
      assert.strictEqual(textOf(yield* bench.succeed("bash", { command: "echo $x" })), "kept\n")
      const agent = { ...bench.agent, name: "second" }
      const next = textOf(yield* bench.succeed("bash", { command: "echo [$x]" }, { agent }))
      assert.include(next, "[]\n")
      assert.include(next, "it belonged to another agent or folder")
    })
  )

  it.scopedLive("SL-233: the session records the shell, and a command with its call instead of its output", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      yield* bench.succeed("bash", { command: "echo out; echo err >&2; (exit 3)" }, { callID: "call_7" })
      const [opened, executed] = yield* story(bench.log)
      assert.strictEqual(opened?.type, "opened")
      assert.deepInclude(executed?.data, {
        command: "echo out; echo err >&2; (exit 3)",
        callID: "call_7",
        stdout: "",
        stderr: "",
        exitCode: 3,
        cwd: bench.folder,
        truncated: true
      })
    })
  )

  it.scoped("SL-234: an idle shell is closed after the host's time, and the next result says so", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench({}, { idle: "1 minute" })
      const life = yield* makeLifeline(bench.folder)
      yield* bench.succeed("bash", { command: hold })
      assert.strictEqual(yield* life.first, "alive")
      yield* TestClock.adjust("61 seconds")
      yield* life.ended
      assert.include(textOf(yield* bench.succeed("bash", { command: "true" })), "it was idle for too long")
    })
  )

  it.scopedLive("SL-234: a session beyond the limit of open shells is told so, and nothing runs", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench({}, { limit: 1 })
      yield* bench.log.append(other, [draft("session.created", { location: { directory: bench.folder } })])
      yield* bench.succeed("bash", { command: "true" })
      const error = yield* bench.fail("bash", { command: "touch made" }, { sessionID: other })
      assert.include(error.message, "1 shells are open")
      assert.deepStrictEqual(readdirSync(bench.folder), [])
    })
  )

  it.scopedLive("SL-237: a shell that another process records as lost is closed", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      const life = yield* makeLifeline(bench.folder)
      yield* bench.succeed("bash", { command: hold })
      assert.strictEqual(yield* life.first, "alive")
      const shellID = (yield* story(bench.log))[0]?.data.shellID ?? ""
      yield* bench.log.append(sessionID, [draft("session.next.shell.closed", { shellID, reason: "lost" })])
      yield* life.ended
      const next = textOf(yield* bench.succeed("bash", { command: "true" }))
      assert.include(next, notice)
      assert.notStrictEqual((yield* story(bench.log)).at(-1)?.data.shellID, shellID)
    })
  )

  it.scopedLive("SL-235: the output of a command is kept whole", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      const output = yield* bench.succeed("bash", { command: "seq 900000 | tee copy" })
      const [path = ""] = output.outputPaths ?? []
      assert.isTrue(readFileSync(path).equals(readFileSync(join(bench.folder, "copy"))))
    })
  )

  it.scopedLive("SL-602: neither a result nor the kept output has terminal sequences or secrets", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      const colours = String.raw`printf '\033[31mred\033[0m\nDB_PASSWORD=hunter2 & more\n'`
      const short = textOf(yield* bench.succeed("bash", { command: `${colours}; ${colours} >&2` }))
      assert.match(short, /^(?:red\nDB_PASSWORD=<redacted> & more\n){2}/)
      const long = yield* bench.succeed("bash", { command: `seq 5000; ${colours}; seq 5000` })
      const [path = ""] = long.outputPaths ?? []
      const kept = readFileSync(path, "utf8")
      assert.include(kept, "\nred\nDB_PASSWORD=<redacted> & more\n")
      assert.notInclude(kept, "hunter2")
      const held = textOf(yield* bench.succeed("bash", { command: "printf 'token: '; printf 'abc123def456'" }))
      assert.include(held, "token: <redacted>")
    })
  )

  it.scopedLive("SL-602: a folder is shown without a secret in it, and the shell stays there", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench()
      const secret = `ghp_${"Ab1Cd2".repeat(6)}`
      const moved = textOf(yield* bench.succeed("bash", { command: `mkdir ${secret}; cd ${secret}` }))
      assert.match(moved, /The shell is now in \S*<redacted>/)
      yield* bench.succeed("bash", { command: "touch made" })
      assert.isTrue(existsSync(join(bench.folder, secret, "made")))
      assert.notInclude(JSON.stringify(yield* story(bench.log)), secret)
    })
  )

  it.effect("SL-235: the shell is not read while more than a megabyte waits, and is read on for nobody", () =>
    Effect.gen(function* () {
      const flow = { paused: 0, resumed: 0 }
      const taken = { pause: () => (flow.paused += 1), resume: () => (flow.resumed += 1) }
      const { discard, end, output, take } = yield* SessionShells.makeOutput
      const bytes = Buffer.alloc(700_000)
      take("stdout", bytes, taken)
      assert.deepStrictEqual(flow, { paused: 0, resumed: 0 })
      take("stdout", bytes, taken)
      assert.deepStrictEqual(flow, { paused: 1, resumed: 0 })
      yield* Stream.runDrain(Stream.take(output, 2))
      assert.deepStrictEqual(flow, { paused: 1, resumed: 1 })
      take("stderr", bytes, taken)
      take("stderr", bytes, taken)
      yield* discard
      take("stderr", bytes, taken)
      assert.deepStrictEqual(flow, { paused: 2, resumed: 2 })
      yield* end
    })
  )

  it.scopedLive("SL-236: the operator's policy refuses its commands after the permission allowed them", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench({}, { policy: { deny: ["touch"] } })
      mkdirSync(join(bench.folder, "old"))
      const error = yield* bench.fail("bash", { command: "touch made" })
      assert.strictEqual(error.type, "permission.denied")
      // Without a policy that says so, permissions alone decide about dangerous commands.
      yield* bench.succeed("bash", { command: "rm -rf old" })
      assert.deepStrictEqual(readdirSync(bench.folder), [])
    })
  )
})

describe("permissions of a live shell", () => {
  const rule = (resource: string, verdict: "allow" | "ask" | "deny") => ({ permission: "bash", resource, verdict })

  it.scopedLive("BR-20: a rule for a name does not allow what an earlier command made of the name", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench({
        rules: [rule("git status", "allow"), rule("echo *", "allow")],
        answer: ({ resources }) =>
          Effect.succeed(resources.some((line) => line.includes("touch")) ? Answer.Once() : Answer.Unavailable())
      })
      for (const command of ["git() { touch made; }", "alias echo='touch made; echo'"]) {
        yield* bench.succeed("bash", { command })
        assert.deepStrictEqual(readdirSync(bench.folder), [], command)
        const refused = yield* bench.fail("bash", { command: command.startsWith("git") ? "git status" : "echo x" })
        assert.strictEqual(refused.type, "permission.denied")
        assert.include(bench.asked.at(-1)?.notes.join("\n"), "earlier commands changed the shell")
        assert.deepStrictEqual(readdirSync(bench.folder), [], command)
      }
    })
  )

  it.scopedLive("BR-21: an approval in a changed shell is for that state of the shell alone", () =>
    Effect.gen(function* () {
      const bench = yield* makeLiveBench({ rules: [], answer: () => Effect.succeed(Answer.Session()) })
      const asked = (command: string) => Effect.map(bench.succeed("bash", { command }), () => bench.asked.length)
      assert.strictEqual(yield* asked("pwd"), 1)
      assert.strictEqual(yield* asked("pwd"), 1)
      assert.strictEqual(yield* asked("pwd() { echo mine; }"), 2)
      assert.strictEqual(yield* asked("pwd"), 3)
      assert.strictEqual(yield* asked("pwd"), 3)
      assert.strictEqual(yield* asked("pwd() { echo other; }"), 4)
      assert.strictEqual(yield* asked("pwd"), 5)
      // The first definition again is another state than the second, and than the first alone.
      assert.strictEqual(yield* asked("pwd() { echo mine; }"), 6)
      assert.strictEqual(yield* asked("pwd"), 7)
      assert.strictEqual(yield* asked(`pwd() { echo ${"long ".repeat(3_300)}; }`), 8)
      assert.strictEqual(yield* asked("pwd"), 9)
      assert.strictEqual(yield* asked("pwd() { echo short; }"), 10)
      assert.strictEqual(yield* asked("pwd"), 11)
      yield* bench.succeed("bash", { command: "exit" })
      assert.strictEqual(yield* asked("pwd"), 12)
    })
  )
})
