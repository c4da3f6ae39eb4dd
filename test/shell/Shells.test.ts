import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Chunk, Deferred, Effect, Exit, Fiber, Layer, Redacted, Stream, TestClock } from "effect"
import { describe } from "vitest"
import { shellID, type Target } from "../../packages/shell/src/domain/Target.ts"
import { type ShellFact, ShellRecord, ShellRecordFailed } from "../../packages/shell/src/record/ShellRecord.ts"
import * as Shells from "../../packages/shell/src/Shells.ts"
import { local, withShells } from "./support/LocalShells.ts"

const key = `sk-${"ant"}-api03-${"Ab1Cd2".repeat(6)}`

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "daybook-outputs-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const withFolder = <A, E>(use: (path: string) => Effect.Effect<A, E>) => Effect.scoped(Effect.flatMap(folder, use))

describe.concurrent("Shells", () => {
  it.live("SL-20: a result has the fields of seed 001, and nothing else without a reason", () =>
    withShells({}, (shells) =>
      Effect.gen(function* () {
        const id = yield* shells.create({ target: local })
        const result = yield* shells.exec(id, "cd /usr && echo out && echo err >&2 && (exit 3)")
        expect({ ...result, duration_ms: 0 }).toEqual({
          stdout: "out",
          stderr: "err",
          exit_code: 3,
          duration_ms: 0,
          cwd: "/usr",
          truncated: false
        })
      })
    )
  )

  it.live("SL-602: a list, and the facts, show a folder without the secret in it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = join(yield* folder, key)
        mkdirSync(place)
        const facts: Array<ShellFact> = []
        yield* withShells({}, (shells) =>
          Effect.gen(function* () {
            yield* Effect.forkScoped(Stream.runForEach(shells.events, (fact) => Effect.sync(() => facts.push(fact))))
            yield* Effect.yieldNow()
            const id = yield* shells.create({ target: { ...local, cwd: place } })
            expect((yield* shells.list)[0]?.cwd).toMatch(/<redacted>$/)
            expect(yield* shells.folder(id)).toBe(place)
            expect((yield* shells.exec(id, "pwd")).stdout).toMatch(/<redacted>$/)
          })
        )
        expect(JSON.stringify(facts)).not.toContain(key)
        expect(JSON.stringify(facts)).toContain("<redacted>")
      })
    )
  )

  it.live("SL-178: a command whose reader takes nothing can be stopped, and the shell stays", () =>
    withShells({}, (shells) =>
      Effect.gen(function* () {
        const id = yield* shells.create({ target: local })
        const printed = yield* Deferred.make<void>()
        const result = yield* shells.exec(id, "yes", {
          stop: Deferred.await(printed),
          onText: (_, __, flow) => {
            flow.pause()
            Deferred.unsafeDone(printed, Effect.void)
          }
        })
        expect(result).toMatchObject({ exit_code: 130, truncated: true })
        expect(result.closed).toBeUndefined()
        expect((yield* shells.exec(id, "echo here")).stdout).toBe("here")
      })
    )
  )

  it.live("SL-66: the count of shells changes with each opening and each end, and a failed opening leaves none", () =>
    withShells({}, (shells) =>
      Effect.gen(function* () {
        const changes = shells.count.changes.pipe(
          Stream.changes,
          Stream.dropWhile((count) => count === 0)
        )
        const counts = yield* Effect.forkScoped(Stream.runCollect(Stream.take(changes, 6)))
        const one = yield* shells.create({ target: local })
        yield* Effect.flip(shells.create({ target: { transport: "local", cwd: "/nowhere" } }))
        const two = yield* shells.create({ target: local })
        yield* shells.exec(one, "exit")
        yield* shells.destroy(two)
        expect(Chunk.toReadonlyArray(yield* Fiber.join(counts))).toEqual([1, 2, 1, 2, 1, 0])
      })
    )
  )

  it.live("SL-21: trailing newlines are removed, and leading and inner ones stay", () =>
    withShells({}, (shells) =>
      Effect.gen(function* () {
        const id = yield* shells.create({ target: local })
        expect((yield* shells.exec(id, "printf '\\n\\na\\n\\nb\\n\\n'")).stdout).toBe("\n\na\n\nb")
      })
    )
  )

  it.live("SL-22: commands of one shell run in the order of the calls", () =>
    withShells({}, (shells) =>
      Effect.gen(function* () {
        const id = yield* shells.create({ target: local })
        const numbers = Array.from({ length: 20 }, (_, index) => index)
        const results = yield* Effect.forEach(numbers, (index) => shells.exec(id, `x="$x ${index}"; echo $x`), {
          concurrency: "unbounded"
        })
        expect(results.at(-1)?.stdout).toBe(numbers.join(" "))
      })
    )
  )

  it.live("SL-22: commands of different shells overlap", () =>
    withShells({}, (shells) =>
      Effect.gen(function* () {
        const one = yield* shells.create({ target: local })
        const other = yield* shells.create({ target: local })
        // Each waits for what the other does.
        const fifo = (yield* shells.exec(one, "f=$(mktemp -u); mkfifo $f; echo $f")).stdout
        const [read] = yield* Effect.all([shells.exec(one, "cat <$f"), shells.exec(other, `echo met >${fifo}`)], {
          concurrency: 2
        })
        expect(read.stdout).toBe("met")
      })
    )
  )

  it.live("SL-23: a timeout stops the command, and the shell keeps its state", () =>
    withShells({}, (shells) =>
      Effect.gen(function* () {
        const id = yield* shells.create({ target: local })
        yield* shells.exec(id, "cd /usr; export A=1")
        const result = yield* shells.exec(id, "echo part; sleep 60; echo never", { timeoutSeconds: 1 })
        expect(result).toMatchObject({ stdout: "part", exit_code: 124, timed_out: true, cwd: "/usr" })
        expect(result.closed).toBeUndefined()
        expect((yield* shells.exec(id, "echo $A")).stdout).toBe("1")
      })
    )
  )

  it.live("SL-24: a shell that ends reports its code, and takes no more commands", () =>
    withShells({}, (shells, facts) =>
      Effect.gen(function* () {
        const id = yield* shells.create({ target: local })
        const result = yield* shells.exec(id, "echo bye; exit 7")
        expect(result).toMatchObject({ stdout: "bye", stderr: "", exit_code: 7, closed: "exited" })
        expect(yield* Effect.flip(shells.exec(id, "echo"))).toMatchObject({ _tag: "ShellClosed", reason: "exited" })
        expect(facts.at(-1)).toMatchObject({ type: "session.next.shell.closed", data: { reason: "exited" } })
      })
    )
  )

  it.live("SL-25: no secret is in a result, a fact, a folder's name or a file", () =>
    withFolder((outputs) =>
      withShells({ outputs: { folder: outputs }, secrets: ["hunter2hunter2"] }, (shells, facts) =>
        Effect.gen(function* () {
          const id = yield* shells.create({ target: local, budget: { max_chars: 200 } })
          const results = [
            yield* shells.exec(id, `k=${key}; echo $k; echo $k >&2; printf '%s\\033[31m%s' "\${k:0:9}" "\${k:9}"`),
            yield* shells.exec(id, `d=$(mktemp -d)/${key}; mkdir $d; cd $d; echo hunter2hunter2`),
            yield* shells.exec(id, `for i in $(seq 400); do echo "$i ${key}"; done; cd /`)
          ]
          const files = readdirSync(outputs).map((name) => readFileSync(join(outputs, name), "utf8"))
          expect(files.length).toBe(1)
          const all = JSON.stringify([results, facts, files])
          expect(all).not.toContain(key.slice(7))
          expect(all).not.toContain("hunter2")
          expect(all).toContain("<redacted>")
        })
      )
    )
  )

  it.live("SL-25: no secret is in the error of a shell that cannot start", () =>
    withShells({ secrets: ["hunter2hunter2"] }, (shells) =>
      Effect.gen(function* () {
        const target: Target = { transport: "local", cwd: `/nonexistent/hunter2hunter2/${key}` }
        const { message } = yield* Effect.flip(shells.create({ target }))
        expect(message).toContain("cannot start in <redacted>")
        expect(message).not.toContain("hunter2")
        expect(message).not.toContain(key.slice(7))
      })
    )
  )

  it.live("SL-26: a budget of a call replaces the shell's, and a bad pattern is refused before the command runs", () =>
    withShells({}, (shells) =>
      Effect.gen(function* () {
        const id = yield* shells.create({ target: local, budget: { keep: { mode: "tail", n: 1 } } })
        expect((yield* shells.exec(id, "seq 5")).stdout).toMatch(/\n5$/)
        const grep = yield* shells.exec(id, "seq 30; exit_code() { return 4; }; exit_code", {
          budget: { grep: { pattern: "^2[89]$" } }
        })
        expect(grep).toMatchObject({
          exit_code: 4,
          truncated: true,
          budget: { stdout: { lines_total: 30, lines_kept: 2 } }
        })
        expect(grep.stdout).toContain("28\n29")
        const refused = yield* Effect.flip(shells.exec(id, "cd /usr", { budget: { grep: { pattern: "(" } } }))
        expect(refused).toMatchObject({ _tag: "InvalidOption" })
        expect((yield* shells.exec(id, "pwd")).stdout).toBe("/tmp")
      })
    )
  )

  it.live("SL-27: what jobs print between commands is late output of the next one", () =>
    withShells({}, (shells) =>
      Effect.gen(function* () {
        const id = yield* shells.create({ target: local })
        yield* shells.exec(id, "f=$(mktemp -u); mkfifo $f; (read -r x <$f; echo late; echo >$f) &")
        const other = yield* shells.create({ target: local })
        const fifo = (yield* shells.exec(id, "echo $f")).stdout
        yield* shells.exec(other, `echo >${fifo}; read -r x <${fifo}`)
        expect(yield* shells.exec(id, "echo now")).toMatchObject({ stdout: "now", late_output: "late" })
      })
    )
  )

  it.live("SL-71: a command that a policy blocks has no effect, is recorded, and shows no secret", () =>
    withShells({ policy: { deny: ["touch"] }, secrets: ["hunter2hunter2"] }, (shells, facts) =>
      Effect.gen(function* () {
        const id = yield* shells.create({ target: local, lists: { allow: ["cd", "pwd", "echo", "touch"] } })
        const operator = yield* Effect.flip(shells.exec(id, "cd /usr; touch /tmp/daybook-hunter2hunter2"))
        expect(operator).toMatchObject({ _tag: "CommandBlocked", policy: "operator" })
        const own = yield* Effect.flip(shells.exec(id, "cd /usr; hunter2hunter2"))
        expect(own).toMatchObject({ _tag: "CommandBlocked", policy: "shell" })
        expect((yield* shells.exec(id, "pwd")).stdout).toBe("/tmp")
        expect(facts.filter(({ type }) => type === "session.next.shell.blocked").length).toBe(2)
        expect(JSON.stringify([facts, operator.message, own.message])).not.toContain("hunter2")
      })
    )
  )

  it.live("SL-130: processes that share a folder of outputs do not take each other's handles", () =>
    withFolder((folder) => {
      const truncated = withShells({ outputs: { folder } }, (shells) =>
        Effect.gen(function* () {
          const id = yield* shells.create({ target: local })
          const { output = "" } = yield* shells.exec(id, "seq 100000", { budget: { max_chars: 10 } })
          return { output, page: yield* shells.output(output, "stdout", { limit: 16 }) }
        })
      )
      return Effect.gen(function* () {
        const [one, two] = [yield* truncated, yield* truncated]
        expect(one.output).not.toBe(two.output)
        expect([one.page.text, two.page.text]).toEqual(["1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\n5\n6\n7\n8\n"])
      })
    })
  )

  it.live("SL-61: a truncated output is whole on disk, for its user only, and is read in pages", () =>
    withFolder((outputs) =>
      withShells({ outputs: { folder: outputs } }, (shells) =>
        Effect.gen(function* () {
          const id = yield* shells.create({ target: local })
          const small = yield* shells.exec(id, "echo small")
          expect(small.output).toBeUndefined()
          const { output = "", stdout, truncated } = yield* shells.exec(id, "seq 100000 | sed s/$/é/")
          expect(truncated).toBe(true)
          expect(stdout.length).toBeLessThan(101_000)
          let whole = ""
          let offset: number | undefined = 0
          while (offset !== undefined) {
            const page: { text: string; next?: number } = yield* shells.output(output, "stdout", {
              offset,
              limit: 4_097
            })
            whole += page.text
            offset = page.next
          }
          expect(whole).toBe(Array.from({ length: 100_000 }, (_, index) => `${index + 1}é\n`).join(""))
          const [name = ""] = readdirSync(outputs)
          expect(statSync(join(outputs, name)).mode & 0o777).toBe(0o600)
          expect(yield* Effect.flip(shells.output("../etc/passwd", "stdout"))).toMatchObject({ _tag: "OutputNotFound" })
        })
      )
    )
  )

  it.live("SL-64: an output is not kept if its command's record fails", () =>
    withFolder((folder) => {
      const failure = new ShellRecordFailed({ sessionID: "ses_1", reason: "no session", details: "it was removed" })
      const record = ShellRecord.of({
        write: ({ type }) => (type === "session.next.shell.executed" ? Effect.fail(failure) : Effect.void)
      })
      return Effect.gen(function* () {
        const shells = yield* Shells.Shells
        const id = yield* shells.create({ target: local })
        const result = yield* shells.exec(id, "seq 100000", { budget: { max_chars: 10 } })
        expect(result).toMatchObject({ exit_code: 0, truncated: true, recorded: false, not_recorded: "it was removed" })
        expect(result.output).toBeUndefined()
        expect(readdirSync(folder)).toEqual([])
      }).pipe(Effect.provide(Layer.provide(Shells.layer({ outputs: { folder } }), Layer.succeed(ShellRecord, record))))
    })
  )

  it.live(
    "SL-581: a command that ran has its result without a record, and the next one runs when the record has it",
    () =>
      Effect.gen(function* () {
        const facts: Array<ShellFact> = []
        let isLocked = false
        const locked = new ShellRecordFailed({ sessionID: "ses_1", reason: "unavailable", details: "it is locked" })
        const record = ShellRecord.of({
          write: (fact) =>
            Effect.suspend(() => (isLocked ? Effect.fail(locked) : Effect.sync(() => void facts.push(fact))))
        })
        yield* Effect.gen(function* () {
          const shells = yield* Shells.Shells
          const id = yield* shells.create({ target: local })
          isLocked = true
          const ran = yield* shells.exec(id, "x=1; echo one; (exit 3)")
          expect(ran).toMatchObject({ stdout: "one", exit_code: 3, recorded: false, not_recorded: "it is locked" })
          const refused = yield* Effect.flip(shells.exec(id, "x=2"))
          expect(refused).toMatchObject({ _tag: "ShellRecordFailed", message: expect.stringContaining("nothing ran") })
          expect(yield* Effect.flip(shells.checkpoint(id))).toMatchObject({ _tag: "ShellRecordFailed" })
          expect(yield* Effect.flip(shells.exec(id, "rm -rf x"))).toMatchObject({ _tag: "CommandBlocked" })
          isLocked = false
          const after = yield* shells.exec(id, "echo $x")
          expect(after.stdout).toBe("1")
          expect(after.recorded).toBeUndefined()
          yield* shells.exec(id, "echo 2")
        }).pipe(Effect.provide(Layer.provide(Shells.layer(), Layer.succeed(ShellRecord, record))))
        const commands = facts.flatMap((fact) =>
          fact.type === "session.next.shell.executed"
            ? [fact.data.command]
            : [fact.type.slice("session.next.shell.".length)]
        )
        expect(commands).toEqual(["opened", "x=1; echo one; (exit 3)", "echo $x", "echo 2", "closed"])
      })
  )

  it.live("SL-581: a checkpoint and a restore that are not recorded say so", () =>
    withFolder((workspace) => {
      const locked = new ShellRecordFailed({ sessionID: "ses_1", reason: "unavailable", details: "it is locked" })
      let isLocked = false
      const record = ShellRecord.of({ write: () => (isLocked ? Effect.fail(locked) : Effect.void) })
      /** Fails the record during the work alone. */
      const whileLocked = <A, E>(work: Effect.Effect<A, E>) => {
        isLocked = true
        return Effect.ensuring(
          work,
          Effect.sync(() => void (isLocked = false))
        )
      }
      return Effect.gen(function* () {
        const shells = yield* Shells.Shells
        const target: Target = { transport: "local", cwd: workspace }
        const id = yield* shells.create({ target, workspace, checkpoints: true, autoSnapshot: false })
        yield* shells.exec(id, "echo one >a")
        const kept = yield* whileLocked(shells.checkpoint(id))
        expect(kept).toMatchObject({ recorded: false, not_recorded: "it is locked" })
        yield* shells.exec(id, "echo two >a")
        const restored = yield* whileLocked(shells.restore(id, kept.checkpoint_id))
        expect(restored).toMatchObject({ changed: ["a"], recorded: false })
        expect(readFileSync(join(workspace, "a"), "utf8")).toBe("one\n")
      }).pipe(Effect.provide(Layer.provide(Shells.layer(), Layer.succeed(ShellRecord, record))))
    })
  )

  it.live("SL-65: a command reads the given input to its end", () =>
    withShells({}, (shells) =>
      Effect.gen(function* () {
        const id = yield* shells.create({ target: local })
        const input = `${"line\n".repeat(100_000)}end`
        expect((yield* shells.exec(id, "wc -c; x=kept", { input })).stdout).toBe(String(input.length))
        expect((yield* shells.exec(id, "cat; echo $x", { input: "a" })).stdout).toBe("akept")
        expect((yield* shells.exec(id, "echo ignores it", { input })).stdout).toBe("ignores it")
      })
    )
  )

  it.live("SL-66: concurrent creates never exceed the limit, and each end frees one slot", () =>
    withShells({ limit: 3 }, (shells) =>
      Effect.gen(function* () {
        const exits = yield* Effect.forEach(
          Array.from({ length: 12 }),
          () => Effect.exit(shells.create({ target: local })),
          { concurrency: "unbounded" }
        )
        const ids = exits.flatMap((exit) => (Exit.isSuccess(exit) ? [exit.value] : []))
        expect(ids.toSorted()).toEqual(["1_local", "2_local", "3_local"])
        expect(yield* Effect.flip(shells.create({ target: local }))).toMatchObject({ _tag: "ShellLimit", limit: 3 })
        expect(yield* shells.destroy("2_local")).toBe(true)
        yield* shells.exec("1_local", "exit")
        expect(yield* shells.create({ target: local })).toBe("4_local")
        expect(yield* shells.create({ target: local })).toBe("5_local")
        expect((yield* shells.list).map(({ session_id }) => session_id)).toEqual(["3_local", "4_local", "5_local"])
      })
    )
  )

  it.live("SL-67: a failed create uses no number and no slot", () =>
    withShells({ limit: 1 }, (shells, facts) =>
      Effect.gen(function* () {
        const nowhere: Target = { transport: "local", cwd: "/nonexistent" }
        const error = yield* Effect.flip(shells.create({ target: nowhere }))
        expect(error).toMatchObject({ _tag: "TransportFailed", reason: "no shell" })
        expect(error.message).toContain("/nonexistent")
        expect(facts).toEqual([])
        expect(yield* shells.create({ target: local })).toBe("1_local")
      })
    )
  )

  it.live("SL-68: destroy is idempotent, and ends a running command", () =>
    withShells({}, (shells, facts) =>
      Effect.gen(function* () {
        const id = yield* shells.create({ target: local })
        const started = yield* Deferred.make<void>()
        const onText = () => Deferred.unsafeDone(started, Effect.void)
        const running = yield* Effect.fork(shells.exec(id, "echo started; sleep 60", { onText }))
        yield* Deferred.await(started)
        expect(yield* shells.destroy(id)).toBe(true)
        expect(yield* Fiber.join(running)).toMatchObject({ stdout: "started", closed: "destroyed" })
        expect(yield* shells.destroy(id)).toBe(false)
        expect(yield* shells.destroy("9_local")).toBe(false)
        const types = facts.map(({ type }) => type.slice("session.next.shell.".length))
        expect(types).toEqual(["opened", "executed", "closed"])
      })
    )
  )

  it.effect("SL-69: a shell is reaped by the clock, 30 minutes after the end of its last command", () =>
    withShells({}, (shells, facts) =>
      Effect.gen(function* () {
        const id = yield* shells.create({ target: local })
        yield* TestClock.adjust("29 minutes")
        yield* shells.exec(id, "echo")
        yield* TestClock.adjust("29 minutes")
        expect(yield* shells.list).toMatchObject([{ session_id: id, idle_secs: 29 * 60, busy: 0 }])
        const closed = yield* Effect.fork(shells.exec(id, "sleep 60", { timeoutSeconds: 3_600 }))
        yield* TestClock.adjust("0 minutes")
        expect((yield* shells.list).length).toBe(1)
        yield* Fiber.interrupt(closed)
        yield* TestClock.adjust("30 minutes")
        while ((yield* shells.list).length > 0) yield* Effect.yieldNow()
        expect(facts.at(-1)).toMatchObject({ type: "session.next.shell.closed", data: { reason: "reaped" } })
      })
    )
  )

  it.live("SL-70: the end of the layer closes every shell as shutdown", () =>
    Effect.gen(function* () {
      let seen: ReadonlyArray<ShellFact> = []
      yield* withShells({}, (shells, facts) =>
        Effect.gen(function* () {
          seen = facts
          yield* shells.create({ target: local })
          yield* shells.create({ target: local })
        })
      )
      const reasons = seen.flatMap((fact) => (fact.type === "session.next.shell.closed" ? [fact.data.reason] : []))
      expect(reasons).toEqual(["shutdown", "shutdown"])
    })
  )
})

it("SL-2: ids name the target, sanitized", () => {
  const ssh = { transport: "ssh", host: "host", user: "build", password: Redacted.make("x") } as const
  expect(shellID(1, { transport: "local" })).toBe("1_local")
  expect(shellID(2, ssh)).toBe("2_ssh_build@host")
  expect(shellID(3, { ...ssh, port: 2222 })).toBe("3_ssh_build@host:2222")
  expect(shellID(4, { ...ssh, port: 22, user: "a/b c", host: `${"h".repeat(60)}` })).toBe(
    `4_ssh_a_b_c@${"h".repeat(40)}`
  )
  expect(shellID(5, { transport: "docker", container: "web" })).toBe("5_docker_web")
})
