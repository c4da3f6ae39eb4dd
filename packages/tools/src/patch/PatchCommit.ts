/**
 * Changes several files, all or none. New contents and originals are kept beside the targets until every file has its
 * new state. On a failure the steps are undone in reverse. If that fails too, the error reports each file's state and
 * where its original is. The caller plans the changes and holds the locks.
 *
 * A reader sees a replaced file's old or new content, never a part. If the process is killed in between, some files are
 * changed and some are not, and the originals remain beside them as `.daybook-*.orig`. Spec: TO-75, TO-76, TO-116,
 * TO-117.
 */
import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { clear, type Commit, type CommitOptions, perform, prepare, type Prepared, type Step } from "./PatchSteps.ts"
import { rollBack } from "./RollBack.ts"

/**
 * Performs all steps, or none. Uninterruptible. Returns the temporary files that could not be removed. The failure has
 * its cause's type if nothing was changed, and is `patch.partial` if something remains changed.
 */
export const commit = Effect.fn("PatchCommit.commit")(
  function* (steps: ReadonlyArray<Step>, options: CommitOptions) {
    const token = randomUUID().slice(0, 8)
    const state: Commit = { ...options, token, folders: new Map(), spare: new Map(), held: new Map() }
    const done: Array<Prepared> = []
    return yield* Effect.gen(function* () {
      const prepared = yield* Effect.forEach(steps, (step, index) => prepare(state, step, index))
      for (const step of prepared) {
        yield* perform(state, step)
        done.push(step)
      }
    }).pipe(
      Effect.matchEffect({
        onFailure: (cause) => rollBack(state, steps, done, cause),
        onSuccess: () => clear(state, new Set())
      })
    )
  },
  Effect.scoped,
  Effect.uninterruptible
)
