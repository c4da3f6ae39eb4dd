/**
 * Shows the permissions that calls wait for. They are not events: while a call is open, the bot asks the server which are
 * open. Spec: DI-44 in specs/discord.md.
 */
import { Effect, Schedule } from "effect"
import { Book } from "../book/Book.ts"
import { isAway, patiently } from "../book/Patience.ts"
import { threadOf } from "../domain/Names.ts"
import { Outbox } from "../outbox/Outbox.ts"
import { Sender } from "../send/Sender.ts"
import type { Body, Target } from "../post/Post.ts"
import { closedBody, permissionBody } from "./PermissionPost.ts"

type Target_ = Extract<Target, { readonly type: "permission" }>

/** Puts the post of a permission. */
export const show = (target: Target_, body: Body) =>
  Effect.gen(function* () {
    const [outbox, sender] = [yield* Outbox, yield* Sender]
    const thread = threadOf(target.sessionID) ?? ""
    const key = { sessionID: target.sessionID, event: `ask:${target.ask}`, chunk: 0 }
    yield* outbox.put(thread, { type: "post", key, body, target })
    yield* sender.wake(thread)
  })

/** Compares what is asked with what is shown. */
const look = (secrets: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const [book, outbox] = [yield* Book, yield* Outbox]
    const shown = yield* outbox.askings
    if (shown.length === 0 && !(yield* outbox.isCalling)) return
    const open = (yield* book.permissions).filter(({ sessionID }) => threadOf(sessionID) !== undefined)
    for (const permission of open) {
      const { ask, sessionID } = permission
      if (
        shown.some(({ target }) => target.ask === ask) ||
        (yield* outbox.isPut({ sessionID, event: `ask:${ask}`, chunk: 0 }))
      )
        continue
      yield* show({ type: "permission", sessionID, ask }, permissionBody(permission, secrets))
    }
    for (const { target } of shown) {
      if (!open.some(({ ask }) => ask === target.ask)) yield* show(target, closedBody)
    }
  })

/** Looks every second. */
export const follow = (secrets: ReadonlyArray<string>) =>
  look(secrets).pipe(
    Effect.repeat(Schedule.spaced("1 second")),
    Effect.retry({ schedule: patiently, while: isAway }),
    Effect.zipRight(Effect.never)
  )
