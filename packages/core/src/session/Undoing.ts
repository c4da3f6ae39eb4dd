/** Takes back the last prompt of a session, and the files that its turns changed. Spec: specs/undo.md UN-13, UN-26..UN-30. */
import { Effect, Struct } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { PromptInput } from "@daybook/log/domain/Values"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { Undoable } from "@daybook/log/store/UndoRows"
import { Snapshots, type Turn } from "../snapshot/Snapshots.ts"
import type { Existing } from "./Existing.ts"
import * as TakingBack from "./TakingBack.ts"
import { untouched } from "./UndoAccount.ts"
import { NothingToUndo, type UndoOptions } from "./UndoOptions.ts"

const promptFields = Struct.keys(PromptInput.fields)

const turnsOf = ({ changes }: Undoable): ReadonlyArray<Turn> =>
  changes.flatMap(({ data: { after, before } }) =>
    before === undefined || after === undefined ? [] : [{ before, after }]
  )

export const make = Effect.fnUntraced(function* ({ changes }: Existing) {
  const store = yield* SessionStore
  const snapshots = yield* Snapshots
  const takeBack = yield* TakingBack.make

  /** What the account says beside the files: the prompt, and turns without a snapshot. */
  const tell = (sessionID: SessionID) =>
    Effect.fnUntraced(function* ({ changes, place }: Undoable) {
      const message = yield* store.message(sessionID, place.id)
      return {
        omitted: [...new Set(changes.flatMap(({ data }) => data.omitted ?? []))],
        problems: changes.flatMap(({ data }) => (data.problem === undefined ? [] : [data.problem])),
        ...(message?.type === "user" ? { prompt: Struct.pick(message, ...promptFields) } : {})
      }
    })

  const undo = Effect.fn("Sessions.undo")((sessionID: SessionID, options: Omit<UndoOptions, "sessionID">) =>
    takeBack(sessionID, options, {
      find: Effect.filterOrFail(
        store.undoable(sessionID),
        (found) => found !== undefined,
        () => new NothingToUndo({ sessionID })
      ),
      restore: (found, request) => {
        const turns = turnsOf(found)
        return turns.length === 0 ? Effect.succeed(untouched) : snapshots.restore({ ...request, turns })
      },
      wayOf: ({ leafID, place }) => ({ from: leafID, to: place.parentID, path: place.before }),
      tell: tell(sessionID)
    })
  )

  return { undo: ({ sessionID, ...options }: UndoOptions) => changes(undo)(sessionID, options) }
})
