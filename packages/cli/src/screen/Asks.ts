/**
 * The permission questions of the sessions that run in this process or on a server, for the screen. A question that is withdrawn, because its
 * call ended or was answered elsewhere, goes away. Spec: SC-520 in specs/screen.md.
 */
import { Effect, Layer } from "effect"
import { Answer, PermissionAsker, type PermissionRequest } from "@daybook/core/permission/PermissionAsker"

export interface Pending {
  readonly request: PermissionRequest
  readonly answer: (answer: Answer) => void
}

/** A question of a server, with its name there. */
export interface Served {
  readonly ask: string
  readonly request: PermissionRequest
  readonly answer: (answer: Answer) => void
}

export interface Asks {
  readonly layer: Layer.Layer<PermissionAsker>
  readonly pending: () => ReadonlyArray<Pending>
  /** Replaces the open questions of a server by these. */
  readonly served: (open: ReadonlyArray<Served>) => void
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
  const known = new Map<string, Pending>()
  /** Questions that were answered here: a list that was asked for before may still have them. */
  const answered = new Set<string>()
  const offer = ({ answer, ask, request }: Served) => {
    const pending: Pending = {
      request,
      answer: (given) => {
        answered.add(ask)
        known.delete(ask)
        open.delete(pending)
        answer(given)
        changed()
      }
    }
    known.set(ask, pending)
    open.add(pending)
    changed()
  }
  const served = (all: ReadonlyArray<Served>) => {
    const names = new Set(all.map(({ ask }) => ask))
    for (const [ask, pending] of known) {
      if (names.has(ask)) continue
      known.delete(ask)
      open.delete(pending)
      changed()
    }
    for (const each of all) if (!known.has(each.ask) && !answered.has(each.ask)) offer(each)
  }
  return {
    served,
    layer: Layer.succeed(PermissionAsker, PermissionAsker.of({ ask })),
    pending: () => [...open],
    watch: (callback) => {
      changed = callback
    },
    close: () => {
      isClosed = true
      // A server asks others.
      for (const pending of known.values()) open.delete(pending)
      for (const pending of open) pending.answer(Answer.Unavailable())
    }
  }
}
