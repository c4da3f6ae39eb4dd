/**
 * Shows the permissions that calls wait for. They are not events: while a call is open, the bot asks the server which are
 * open. Spec: DI-44 in specs/discord.md.
 */
import { Clock, Effect, Schedule } from "effect"
import { Book } from "../book/Book.ts"
import { isAway, patiently } from "../book/Patience.ts"
import { Outbox } from "../outbox/Outbox.ts"
import { Sender } from "../send/Sender.ts"
import type { Body, Target } from "../post/Post.ts"
import { closedBody, expiredBody, permissionBody } from "./PermissionPost.ts"

type Target_ = Extract<Target, { readonly type: "permission" }>

/** Puts the post of a permission. */
export const show = (thread: string, target: Target_, body: Body) =>
  Effect.gen(function* () {
    const [outbox, sender] = [yield* Outbox, yield* Sender]
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
    // Read before the request, so that an expired permission never counts as decided.
    const now = yield* Clock.currentTimeMillis
    const open = yield* book.permissions
    for (const permission of open) {
      const { ask, sessionID, timeLeftMs } = permission
      const thread = yield* outbox.threadOf(sessionID)
      if (
        thread === undefined ||
        shown.some(({ target }) => target.ask === ask) ||
        (yield* outbox.isPut({ sessionID, event: `ask:${ask}`, chunk: 0 }))
      )
        continue
      const expiry = timeLeftMs === undefined ? {} : { expiresAt: now + timeLeftMs }
      const body = permissionBody(permission, secrets, expiry.expiresAt)
      yield* show(thread, { type: "permission", sessionID, ask, ...expiry }, body)
    }
    for (const { channel, target } of shown) {
      if (open.some(({ ask }) => ask === target.ask)) continue
      yield* show(channel, target, now >= (target.expiresAt ?? Infinity) ? expiredBody : closedBody)
    }
  })

/** Looks every second, while no person decides: a press is not taken for a decision elsewhere. */
export const follow = (secrets: ReadonlyArray<string>, decisions: Effect.Semaphore) =>
  decisions
    .withPermits(1)(look(secrets))
    .pipe(
      Effect.repeat(Schedule.spaced("1 second")),
      Effect.retry({ schedule: patiently, while: isAway }),
      Effect.zipRight(Effect.never)
    )
