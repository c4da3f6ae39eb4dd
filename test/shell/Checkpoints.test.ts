import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { describe } from "vitest"
import { isReadOnly } from "../../packages/shell/src/ShellCheckpoints.ts"
import { type ShellFact, ShellRecord } from "../../packages/shell/src/record/ShellRecord.ts"
import type { CreateOptions } from "../../packages/shell/src/ShellOptions.ts"
import * as Shells from "../../packages/shell/src/Shells.ts"

/** A shell in a new folder, which is its workspace. */
const withShell = <A, E>(
  options: Omit<CreateOptions, "target">,
  use: (shell: {
    readonly shells: Shells.Shells["Type"]
    readonly id: string
    readonly folder: string
    readonly facts: ReadonlyArray<ShellFact>
  }) => Effect.Effect<A, E>
) => {
  const facts: Array<ShellFact> = []
  const record = Layer.succeed(
    ShellRecord,
    ShellRecord.of({ write: (fact) => Effect.sync(() => void facts.push(fact)) })
  )
  return Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "daybook-workspace-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
    )
    const shells = yield* Shells.Shells
    const id = yield* shells.create({
      target: { transport: "local", cwd: folder },
      workspace: folder,
      checkpoints: true,
      ...options
    })
    return yield* use({ shells, id, folder, facts })
  }).pipe(Effect.scoped, Effect.provide(Layer.provide(Shells.layer(), record)))
}

/** The shadow repositories of a workspace. */
const storesOf = (folder: string): ReadonlyArray<string> =>
  readdirSync("/var/tmp")
    .filter((name) => name.startsWith("daybook-checkpoints."))
    .map((name) => join("/var/tmp", name))
    .filter(
      (store) => existsSync(join(store, "workspace")) && readFileSync(join(store, "workspace"), "utf8") === folder
    )

describe.concurrent("Shells: checkpoints", () => {
  it.live("SL-150: a local shell has checkpoints only on request", () =>
    withShell({ checkpoints: false }, ({ facts, id, shells }) =>
      Effect.gen(function* () {
        const calls = [
          Effect.asVoid(shells.checkpoint(id)),
          Effect.asVoid(shells.checkpoints(id)),
          Effect.asVoid(shells.restore(id))
        ]
        for (const call of calls) {
          expect(yield* Effect.flip(call)).toMatchObject({ _tag: "CheckpointFailed", reason: "unsupported" })
        }
        expect(yield* shells.exec(id, "echo 1 >a")).not.toHaveProperty("no_checkpoint")
        expect(facts.map(({ type }) => type)).not.toContain("session.next.shell.checkpointed")
      })
    )
  )

  // The clock of the test stands still.
  it.effect("SL-160: a checkpoint and a restore end with their program, and wait for no time", () =>
    withShell({ autoSnapshot: false }, ({ folder, id, shells }) =>
      Effect.gen(function* () {
        writeFileSync(join(folder, "a"), "before")
        const { checkpoint_id } = yield* shells.checkpoint(id)
        writeFileSync(join(folder, "a"), "after")
        expect(yield* shells.restore(id, checkpoint_id)).toMatchObject({ restored_to: checkpoint_id })
        expect(readFileSync(join(folder, "a"), "utf8")).toBe("before")
      })
    )
  )

  it.live("SL-151: an invalid workspace or pattern is refused before anything starts", () =>
    withShell({}, ({ folder, shells }) =>
      Effect.gen(function* () {
        const target = { transport: "local" as const, cwd: folder }
        const bad: ReadonlyArray<Omit<CreateOptions, "target">> = [
          { workspace: "relative" },
          { workspace: "/" },
          { workspace: "/a/.." },
          { workspace: "/a\0b" },
          { checkpoints: true },
          { workspace: folder, checkpoints: true, checkpointIgnores: ["!.env"] },
          { workspace: folder, checkpoints: true, checkpointIgnores: ["a\nb"] },
          { workspace: folder, autoSnapshot: true }
        ]
        for (const options of bad) {
          expect(yield* Effect.flip(shells.create({ target, ...options }))).toMatchObject({ _tag: "InvalidOption" })
        }
        expect(yield* shells.list).toHaveLength(1)
      })
    )
  )

  it.live("SL-152: the home folder, a folder above it, and a missing one are no workspace", () =>
    withShell({}, ({ folder, shells }) =>
      Effect.gen(function* () {
        const home = process.env["HOME"] ?? "/root"
        for (const workspace of [home, join(folder, "missing")]) {
          const id = yield* shells.create({ target: { transport: "local", cwd: "/" }, workspace, checkpoints: true })
          expect(yield* Effect.flip(shells.checkpoint(id))).toMatchObject({
            _tag: "CheckpointFailed",
            reason: "workspace"
          })
        }
      })
    )
  )

  it.live("SL-163: a command that may change files has a checkpoint before it, a reader has none", () =>
    withShell({}, ({ facts, folder, id, shells }) =>
      Effect.gen(function* () {
        writeFileSync(join(folder, "a"), "before\n")
        yield* shells.exec(id, "cat a | head -n 1")
        expect(yield* shells.checkpoints(id)).toEqual([])
        yield* shells.exec(id, "rm a && echo new >b")
        const [made, ...more] = yield* shells.checkpoints(id)
        expect(more).toEqual([])
        expect(made).toMatchObject({ kind: "command", label: "rm a && echo new >b" })
        const restored = yield* shells.restore(id)
        expect(restored).toMatchObject({ restored_to: made?.id, files_changed: 2, added: ["a"], deleted: ["b"] })
        expect(readdirSync(folder)).toEqual(["a"])
        expect(facts.filter(({ type }) => /checkpointed|restored/.test(type)).map(({ data }) => data)).toEqual([
          { shellID: id, checkpointID: made?.id, label: "rm a && echo new >b" },
          { shellID: id, checkpointID: made?.id, filesChanged: 2 }
        ])
      })
    )
  )

  it.live("SL-163: with autoSnapshot false, only the caller makes checkpoints", () =>
    withShell({ autoSnapshot: false }, ({ id, shells }) =>
      Effect.gen(function* () {
        yield* shells.exec(id, "echo 1 >a")
        expect(yield* shells.checkpoints(id)).toEqual([])
        const { checkpoint_id } = yield* shells.checkpoint(id, "mine")
        expect(yield* shells.checkpoints(id)).toMatchObject([{ id: checkpoint_id, label: "mine", kind: "asked" }])
      })
    )
  )

  it.live("SL-165: after a command that may rename readers, every command has a checkpoint", () =>
    withShell({}, ({ folder, id, shells }) =>
      Effect.gen(function* () {
        yield* shells.exec(id, "ls() { rm -f a; }; echo 1 >a")
        yield* shells.exec(id, "ls")
        expect(existsSync(join(folder, "a"))).toBe(false)
        yield* shells.restore(id)
        expect(existsSync(join(folder, "a"))).toBe(true)
      })
    )
  )

  it.live("SL-166: a command runs without its checkpoint if that fails, and its result says why", () =>
    withShell({}, ({ folder, id, shells }) =>
      Effect.gen(function* () {
        rmSync(folder, { recursive: true })
        const result = yield* shells.exec(
          id,
          "echo ran; mkdir -p /nonexistent-parent 2>/dev/null; rmdir /nonexistent-parent"
        )
        expect(result).toMatchObject({ stdout: "ran", no_checkpoint: `checkpoint: there is no folder ${folder}` })
      })
    )
  )

  it.live("SL-167: the checkpoints go with the shell", () =>
    withShell({}, ({ folder, id, shells }) =>
      Effect.gen(function* () {
        yield* shells.exec(id, "echo 1 >a")
        expect(storesOf(folder)).toHaveLength(1)
        yield* shells.destroy(id)
        expect(storesOf(folder)).toEqual([])
        expect(yield* Effect.flip(shells.restore(id))).toMatchObject({
          _tag: expect.stringMatching(/^Shell(?:Closed|NotFound)$/)
        })
      })
    )
  )

  it.live("SL-25: no secret is in the label of a checkpoint", () =>
    withShell({}, ({ facts, id, shells }) =>
      Effect.gen(function* () {
        const key = `sk-${"ant"}-api03-${"Ab1Cd2".repeat(6)}`
        yield* shells.exec(id, `echo ${key} >.env`)
        yield* shells.checkpoint(id, key)
        expect(JSON.stringify([facts, yield* shells.checkpoints(id)])).not.toContain("Ab1Cd2")
      })
    )
  )

  it.effect("SL-164: a redirection, a substitution, an assignment or any other command is no reader", () =>
    Effect.gen(function* () {
      const grammar = yield* Effect.promise(() => import("unbash"))
      for (const text of [
        "ls",
        "ls -la | wc -l",
        "cd /x && cat a b",
        "grep -r x . | head -n 2; pwd",
        "echo $HOME",
        "true"
      ]) {
        expect([text, isReadOnly(grammar, text)]).toEqual([text, true])
      }
      for (const text of [
        "ls >a",
        "ls 2>/dev/null",
        "cat <a",
        "echo $(rm a)",
        "echo `rm a`",
        "cat <(rm a)",
        "x=1 ls",
        "x=1",
        "$x a",
        "l* a",
        "'l's | sh",
        "ls; rm a",
        "ls & rm a",
        "find . -delete",
        "sort -o a a",
        "sed -i s/a/b/ a",
        "tee a",
        "(ls; rm a)",
        "if true; then rm a; fi",
        "ls() { rm a; }; ls",
        "echo ${x:=1}",
        "echo $((x=1))",
        "./ls",
        "xargs rm",
        "ls 'unclosed"
      ]) {
        expect([text, isReadOnly(grammar, text)]).toEqual([text, false])
      }
    })
  )
})
