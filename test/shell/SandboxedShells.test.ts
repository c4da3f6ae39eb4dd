import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, type Scope, Stream } from "effect"
import { describe } from "vitest"
import * as Sandbox from "../../packages/core/src/child/Sandbox.ts"
import { ShellRecord } from "../../packages/shell/src/record/ShellRecord.ts"
import type { CreateOptions, ShellSettings } from "../../packages/shell/src/ShellOptions.ts"
import * as Shells from "../../packages/shell/src/Shells.ts"
import { waitingFor } from "../support/Waiting.ts"
import { makeLifeline } from "../tools/Lifeline.ts"
import { temporaryFolder } from "../tools/Workbench.ts"
import { processes } from "./support/Processes.ts"
import { runToEnd } from "./support/Programs.ts"
import { sandboxed } from "./support/Sandboxed.ts"
import { lacks } from "../support/Parts.ts"

interface Bench {
  readonly shells: Shells.Shells["Type"]
  /** The folder that shells may write, and one that they do not see. */
  readonly folder: string
  readonly outside: string
  /** Opens a shell in the folder. */
  readonly open: (options?: Omit<CreateOptions, "target">) => Effect.Effect<string, Shells.CreateError>
}

/** Shells of a host that says nothing but that there is a sandbox. */
const withShells = <A, E>(
  use: (bench: Bench) => Effect.Effect<A, E, Scope.Scope>,
  {
    sandbox = {},
    settings = () => ({})
  }: {
    readonly sandbox?: Sandbox.SandboxSettings
    readonly settings?: (folder: string) => ShellSettings
  } = {}
) =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const [folder, outside] = [join(root, "project"), join(root, "outside")]
    for (const each of [folder, outside]) mkdirSync(each)
    writeFileSync(join(outside, "secret"), "secret-beside")
    const layer = Shells.layer(settings(folder)).pipe(
      Layer.provide([
        Sandbox.layer({ mode: "on", ...sandbox }),
        Layer.succeed(ShellRecord, ShellRecord.of({ write: () => Effect.void }))
      ])
    )
    return yield* Effect.provide(
      Effect.flatMap(Shells.Shells, (shells) =>
        use({
          shells,
          folder,
          outside,
          open: (options = {}) => shells.create({ target: { transport: "local" }, writable: [folder], ...options })
        })
      ),
      layer
    )
  }).pipe(Effect.scoped)

/** Waits until a shell closes; returns the reason. */
const closing = (shells: Shells.Shells["Type"]) =>
  Effect.fork(
    Stream.runHead(
      Stream.filterMap(shells.events, ({ data, type }) =>
        type === "session.next.shell.closed" ? Option.fromNullable(data["reason"]) : Option.none()
      )
    )
  )

describe.skipIf(lacks("bubblewrap")).concurrent("Shells in a sandbox", () => {
  it.live("SL-200: a local shell is in the host's sandbox, with no setting of its own", () =>
    withShells(({ folder, open, outside, shells }) =>
      Effect.gen(function* () {
        const id = yield* open()
        const result = yield* shells.exec(id, `pwd; cat ${outside}/secret; export A=kept; echo x >made`)
        expect(result).toMatchObject({ stdout: folder, exit_code: 0 })
        expect(readdirSync(folder)).toEqual(["made"])
        expect((yield* shells.exec(id, "echo $A $DAYBOOK_SHELL; ls -d /proc/[0-9]* | wc -l")).stdout).toMatch(
          /^kept [\w.]+\n\d$/
        )
      })
    )
  )

  it.live("SL-200: kept outputs are hidden also in a folder that a shell may write", () =>
    withShells(
      ({ folder, open, shells }) =>
        Effect.gen(function* () {
          mkdirSync(join(folder, "kept"))
          writeFileSync(join(folder, "kept", "earlier"), "an output")
          const id = yield* open({ budget: { max_chars: 10 } })
          const { output = "", truncated } = yield* shells.exec(id, "seq 100; cat kept/*; ls kept")
          expect(truncated).toBe(true)
          expect((yield* shells.output(output, "stdout")).text).not.toContain("earlier")
          expect((yield* shells.exec(id, "cat kept/earlier; echo x >kept/x")).exit_code).toBe(1)
        }),
      { settings: (folder) => ({ outputs: { folder: join(folder, "kept") } }) }
    )
  )

  it.live("SL-202: without folders of its own, a shell may write this process's folder", () =>
    withShells(({ shells }) =>
      Effect.gen(function* () {
        const id = yield* shells.create({ target: { transport: "local" } })
        const { stdout } = yield* shells.exec(id, "pwd; test -w package.json && echo writable")
        expect(stdout).toBe(`${process.cwd()}\nwritable`)
      })
    )
  )

  it.live("SL-202: a shell in a folder of the settings does not need the host's folder, which may be too wide", () =>
    Effect.gen(function* () {
      const beside = yield* temporaryFolder
      yield* withShells(
        ({ shells }) =>
          Effect.gen(function* () {
            const target = { transport: "local", cwd: beside } as const
            const id = yield* shells.create({ target, writable: ["/"] })
            expect((yield* shells.exec(id, "echo x >made; pwd")).stdout).toBe(beside)
            expect(existsSync(join(beside, "made"))).toBe(true)
            const wide = yield* Effect.flip(shells.create({ target: { transport: "local" }, writable: ["/"] }))
            expect(wide).toMatchObject({ _tag: "TransportFailed", reason: "sandbox.denied" })
            expect(wide.message).toContain("hides the home folder")
          }),
        { sandbox: { writable: [beside] } }
      )
    }).pipe(Effect.scoped)
  )

  it.live("SL-203: a folder that the sandbox does not show is refused before anything starts", () =>
    withShells(({ folder, open, outside, shells }) =>
      Effect.gen(function* () {
        for (const cwd of [outside, "/etc", join(folder, "../outside"), "/usr"]) {
          const error = yield* Effect.flip(shells.create({ target: { transport: "local", cwd }, writable: [folder] }))
          expect(error).toMatchObject({ _tag: "TransportFailed", reason: "sandbox.denied" })
          expect(error.message).toContain("sandbox.writable")
        }
        const missing = yield* Effect.flip(
          shells.create({ target: { transport: "local", cwd: join(folder, "none") }, writable: [folder] })
        )
        expect(missing.message).toContain("no such folder")
        // No slot and no number was used.
        expect(yield* open()).toBe("1_local")
      })
    )
  )

  it.live("SL-203: where no sandbox can be made, no shell opens, and the error says what to do", () =>
    withShells(
      ({ open, shells }) =>
        Effect.gen(function* () {
          const error = yield* Effect.flip(open())
          expect(error).toMatchObject({ _tag: "TransportFailed", reason: "sandbox.unavailable" })
          for (const words of ["bubblewrap is missing", "apt-get install bubblewrap"]) {
            expect(error.message).toContain(words)
          }
          expect(yield* shells.list).toEqual([])
        }),
      { sandbox: { program: "/nowhere/bwrap" } }
    )
  )

  it.live("SL-204: when a protected file is replaced, no further command runs, and a new shell protects it", () =>
    withShells(({ folder, open, shells }) =>
      Effect.gen(function* () {
        writeFileSync(join(folder, ".env"), "secret")
        writeFileSync(join(folder, "plain"), "one")
        const id = yield* open()
        for (const name of [".env", "plain"]) {
          expect((yield* shells.exec(id, "cat .env plain 2>/dev/null")).stdout).toBe("one")
          // As an editor writes a file.
          writeFileSync(join(folder, "new"), "one")
          renameSync(join(folder, "new"), join(folder, name === ".env" ? "plain" : ".env"))
        }
        const result = yield* shells.exec(id, "cat .env >seen; touch ran")
        expect(result).toMatchObject({ stdout: "", closed: "unprotected" })
        expect(result.sandbox).toContain("was replaced")
        expect(readdirSync(folder).toSorted()).toEqual([".env", "plain"])
        expect((yield* shells.exec(yield* open(), "cat .env plain 2>/dev/null")).stdout).toBe("one")
      })
    )
  )

  it.live("SL-204: a protected file that is removed ends neither the shell nor its checkpoints", () =>
    withShells(({ folder, open, shells }) =>
      Effect.gen(function* () {
        for (const name of [".env", "AGENTS.md"]) writeFileSync(join(folder, name), "was")
        const id = yield* open({ workspace: folder, checkpoints: true })
        for (const name of [".env", "AGENTS.md"]) rmSync(join(folder, name))
        expect(yield* shells.exec(id, "echo x >made; ls -A")).toMatchObject({ stdout: "made", exit_code: 0 })
        expect(yield* shells.exec(id, "echo y >made")).not.toHaveProperty("no_checkpoint")
        expect((yield* shells.restore(id)).changed).toEqual(["made"])
      })
    )
  )

  it.live("SL-205: a job beyond a bound ends the shell, also when no command runs", () =>
    withShells(
      ({ folder, open, shells }) =>
        Effect.gen(function* () {
          const life = yield* makeLifeline(folder)
          const id = yield* open()
          const reason = yield* closing(shells)
          const job = "until test -e go; do sleep 0.01; done; for i in $(seq 60); do sleep 60 & done; wait"
          yield* shells.exec(id, `exec 5>life; (${job}) & exec 5>&-`)
          writeFileSync(join(folder, "go"), "")
          expect(yield* waitingFor("the end of the shell")(Fiber.join(reason))).toEqual(Option.some("processes"))
          yield* life.ended
          const late = yield* Effect.flip(shells.exec(id, "echo"))
          expect(late).toMatchObject({ _tag: "ShellClosed", reason: "processes" })
        }),
      { sandbox: { processes: 40 } }
    )
  )

  it.live("SL-206: the result of a command that fails says what the sandbox allows, and no other result does", () =>
    withShells(({ folder, open, shells }) =>
      Effect.gen(function* () {
        const id = yield* open()
        const failed = yield* shells.exec(id, "echo x >/usr/x")
        expect(failed.sandbox).toContain(`only ${folder}, /tmp may be written`)
        expect(yield* shells.exec(id, "echo fine")).not.toHaveProperty("sandbox")
        const late = yield* shells.exec(id, "sleep 600", { timeoutSeconds: 1 })
        expect([late.exit_code, late.sandbox]).toEqual([124, undefined])
      })
    )
  )

  it.live("SL-207: the end of a shell ends its jobs, background commands and what left its session", () =>
    withShells(({ folder, open, shells }) =>
      Effect.gen(function* () {
        const life = yield* makeLifeline(folder)
        const id = yield* open()
        yield* shells.exec(id, "(exec 5>life; setsid -f sleep 600) & exec 5>life; env -i sleep 600 & exec 5>&-; echo")
        const started = yield* shells.background.start(id, "exec 5>life; echo up; (trap '' TERM HUP INT; sleep 600)")
        expect(started).toBeDefined()
        expect(yield* shells.destroy(id)).toBe(true)
        yield* life.ended
      })
    )
  )

  it.live("SL-207: a shell that ends by itself is closed when the last process of its sandbox has ended", () =>
    withShells(({ open, shells }) =>
      Effect.gen(function* () {
        const mark = `60${process.pid}.25`
        const command = `for i in $(seq 400); do sleep ${mark} & done 2>/dev/null; exit 7`
        const result = yield* shells.exec(yield* open(), command)
        expect(result).toMatchObject({ exit_code: 7, closed: "exited" })
        expect(yield* processes(`sleep ${mark}`)).toEqual([])
      })
    )
  )

  it.live("SL-208: programs outside the sandbox do not come from a folder that the shell writes", () =>
    withShells(
      ({ folder, open, outside, shells }) =>
        Effect.gen(function* () {
          mkdirSync(join(folder, "bin"))
          const names = "sh bash grep cat mktemp mkfifo rm kill env find stat git".split(" ")
          for (const name of names) {
            const text = `#!/bin/sh\necho planted; echo ${name} >>${outside}/escaped; exit 1\n`
            writeFileSync(join(folder, "bin", name), text, { mode: 0o755 })
          }
          for (const name of ["sh", "bash"]) execFileSync("/bin/rm", [join(folder, "bin", name)])
          const id = yield* open({ workspace: folder, checkpoints: true, autoSnapshot: false })
          for (const name of ["sh", "bash"]) {
            writeFileSync(join(folder, "bin", name), `#!/bin/dash\necho ${name} >>${outside}/escaped\n`, {
              mode: 0o755
            })
          }
          expect((yield* shells.exec(id, "grep x y")).stdout).toBe("planted")
          yield* shells.exec(id, "read -r x; echo $x", { input: "given" })
          yield* shells.exec(id, "sleep 600", { timeoutSeconds: 1 })
          yield* shells.checkpoint(id)
          yield* shells.restore(id)
          yield* shells.destroy(id)
          expect(readdirSync(outside)).toEqual(["secret"])
        }),
      { settings: (folder) => ({ local: { env: { PATH: `${folder}/bin:/usr/bin:/bin`, HOME: "/nonexistent" } } }) }
    )
  )

  it.live("SL-209: input reaches a command, and its folder cannot be written", () =>
    withShells(({ open, shells }) =>
      Effect.gen(function* () {
        const id = yield* open()
        const command =
          "read -r x; echo $x; for d in /tmp/daybook-shell-*; do touch $d/x; rm -f $d/* $d/*/*; ls $d $d/*; done 2>/dev/null"
        // The fifo stays while the input is open.
        const input = Stream.concat(Stream.make("given\n"), Stream.never)
        const { stdout } = yield* shells.exec(id, command, { input })
        expect(stdout).toMatch(/^given\n\S+:\ndaybook-input\.\w+\n\n\S+:\ninput$/)
      })
    )
  )

  it.live("SL-210: what makes and restores checkpoints reaches what the shell reaches, and the store", () =>
    Effect.gen(function* () {
      const [folder, outside] = [yield* temporaryFolder, yield* temporaryFolder]
      writeFileSync(join(folder, "AGENTS.md"), "was")
      writeFileSync(join(outside, "secret"), "secret-beside")
      const { sandbox, ...transport } = yield* sandboxed([folder])
      const store = yield* temporaryFolder
      const script =
        `cd ${folder}; cat ${outside}/secret; echo x >${outside}/x; echo x >AGENTS.md; echo new >PLAN.md; ` +
        `echo kept >${store}/kept; cat AGENTS.md`
      const work = { ...transport, run: (text: string) => sandbox?.run(text, store) ?? transport.run(text) }
      const { stderr, stdout } = yield* runToEnd(work, `{ ${script}; } 2>/dev/null`)
      expect([stdout.toString(), stderr.toString()]).toEqual(["was", ""])
      expect([readdirSync(outside), readdirSync(store)]).toEqual([["secret"], ["kept"]])
    }).pipe(Effect.scoped)
  )

  it.live("SL-210: a workspace that the shell does not see has no checkpoints", () =>
    withShells(({ open, outside, shells }) =>
      Effect.gen(function* () {
        const id = yield* open({ workspace: outside, checkpoints: true })
        const failed = yield* Effect.flip(shells.checkpoint(id))
        expect(failed).toMatchObject({ _tag: "CheckpointFailed", reason: "workspace" })
      })
    )
  )

  it.live("SL-210: a shell does not see its checkpoints", () =>
    withShells(({ folder, open, shells }) =>
      Effect.gen(function* () {
        const id = yield* open({ workspace: folder, checkpoints: true })
        yield* shells.exec(id, "echo one >a; echo two >AGENTS.md")
        yield* shells.checkpoint(id)
        const look =
          "ls -d /var/tmp/daybook-checkpoints.* /tmp/daybook-checkpoints.* 2>/dev/null; rm AGENTS.md; echo x >a"
        expect((yield* shells.exec(id, look)).stdout).toBe("")
        expect((yield* shells.restore(id)).files_changed).toBe(2)
      })
    )
  )
})
