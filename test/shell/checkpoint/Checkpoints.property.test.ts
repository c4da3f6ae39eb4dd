/** Random edits, checkpoints and restores, against a model that remembers the tree of each checkpoint. */
import { expect, it } from "@effect/vitest"
import { Effect, FastCheck as fc } from "effect"
import { quoted } from "../../../packages/shell/src/session/ShellScripts.ts"
import * as LocalTransport from "../../../packages/shell/src/transport/LocalTransport.ts"
import { workspaceOn } from "../support/CheckpointContract.ts"

/** Paths that take each other's place as files, folders and links. */
const paths = ["a", "b", "d", "d/a", "d/e", "d/e/a", "-f", "n\nl", "d/*", "ü/ ", "keep/x", "f.log", "keep/g.log"]
const isIgnored = (path: string) => path.endsWith(".log")

const path = fc.constantFrom(...paths)
const file = path.filter((each) => !isIgnored(each))

const making = (name: string, command: string) => {
  const folder = name.includes("/") ? `./${name.slice(0, name.lastIndexOf("/"))}` : "."
  const [, first = ""] = /^\.\/([^/]*)/.exec(folder) ?? []
  // A file or link may stand where a folder is needed.
  const above =
    first === ""
      ? []
      : [`./${first}`, folder].map(
          (each) => `[ -d ${quoted(each)} ] && [ ! -L ${quoted(each)} ] || rm -f -- ${quoted(each)}`
        )
  return [...above, `mkdir -p -- ${quoted(folder)}`, `rm -rf -- ${quoted(`./${name}`)}`, command].join("\n")
}

const edit: fc.Arbitrary<string> = fc.oneof(
  fc.tuple(path, fc.nat(9)).map(([name, digit]) => making(name, `echo ${digit} >${quoted(`./${name}`)}`)),
  fc
    .tuple(file, fc.constantFrom("600", "755", "640", "711"))
    .map(([name, mode]) => making(name, `echo x >${quoted(`./${name}`)}; chmod ${mode} ${quoted(`./${name}`)}`)),
  fc.tuple(file, file).map(([name, target]) => making(name, `ln -s -- ${quoted(target)} ${quoted(`./${name}`)}`)),
  file.map((name) => making(name, `mkdir ${quoted(`./${name}`)}`)),
  file.map((name) => `rm -rf -- ${quoted(`./${name}`)}`)
)

interface Step {
  readonly edits: ReadonlyArray<string>
  /** Restores this one of the checkpoints, counted from the first; else makes one. */
  readonly restore: number | undefined
}

const step: fc.Arbitrary<Step> = fc.record({
  edits: fc.array(edit, { minLength: 1, maxLength: 6 }),
  restore: fc.option(fc.nat(20), { nil: undefined })
})

const split = (tree: ReadonlyMap<string, string>) => ({
  captured: new Map([...tree].filter(([name]) => !isIgnored(name))),
  ignored: new Map([...tree].filter(([name]) => isIgnored(name)))
})

const runs = (steps: ReadonlyArray<Step>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { checkpoints, sh, tree } = yield* workspaceOn(LocalTransport.makeUnconfined())
      yield* sh("echo '*.log' >.gitignore; mkdir keep; echo kept >keep/always")
      const model: Array<{ readonly id: string; readonly captured: ReadonlyMap<string, string> }> = []
      for (const { edits, restore } of steps) {
        yield* sh(edits.join("\n"))
        const before = split(yield* tree)
        const target = restore === undefined ? undefined : model[restore % Math.max(1, model.length)]
        if (target === undefined) {
          model.push({ id: (yield* checkpoints.create("asked")).id, captured: before.captured })
        } else {
          const { safety_checkpoint } = yield* checkpoints.restore(target.id)
          expect(split(yield* tree)).toEqual({ captured: target.captured, ignored: before.ignored })
          model.push({ id: safety_checkpoint, captured: before.captured })
        }
      }
    })
  )

it.live(
  "SL-159: after any edits, checkpoints and restores, each restore gives the tree of its checkpoint",
  () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 6 }), (steps) => Effect.runPromise(runs(steps))),
        { numRuns: 3, endOnFailure: true }
      )
    ),
  120_000
)
