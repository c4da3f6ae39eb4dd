/**
 * The permission questions of the sessions that run in this process, for the screen. A question that is withdrawn, because its
 * call ended or was answered elsewhere, goes away. Spec: SC-520 in specs/screen.md.
 */
import { Effect, Layer } from "effect"
import { Answer, PermissionAsker, type PermissionRequest } from "@daybook/core/permission/PermissionAsker"

/** A permission that a call waits for. */
export interface Pending {
  readonly request: PermissionRequest
  readonly answer: (answer: Answer) => void
}

export interface Asks {
  readonly layer: Layer.Layer<PermissionAsker>
  /** Open questions, the oldest first. */
  readonly pending: () => ReadonlyArray<Pending>
  /** Calls back at each change. */
  readonly watch: (changed: () => void) => void
  /** Refuses open questions and later ones: nobody is there any more. */
  readonly close: () => void
}

export const make = (): Asks => {
  const open = new Set<Pending>()
  let changed = () => {}
  let isClosed = false
  const ask = (request: PermissionRequest) =>
    Effect.async<Answer>((resume) => {
      if (isClosed) return resume(Effect.succeed(Answer.Unavailable()))
      const pending: Pending = {
        request,
        answer: (answer) => {
          if (!open.delete(pending)) return
          resume(Effect.succeed(answer))
          changed()
        }
      }
      open.add(pending)
      changed()
      return Effect.sync(() => {
        if (open.delete(pending)) changed()
      })
    })
  return {
    layer: Layer.succeed(PermissionAsker, PermissionAsker.of({ ask })),
    pending: () => [...open],
    watch: (callback) => {
      changed = callback
    },
    close: () => {
      isClosed = true
      for (const pending of open) pending.answer(Answer.Unavailable())
    }
  }
}
