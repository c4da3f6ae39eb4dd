/** Resolves a typed message reference: an id, a label, or the beginning or end of an id. Spec: CL-210. */
import { Effect } from "effect"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { oneLine } from "../render/Plain.ts"
import { NotFound, UsageError } from "../support/Errors.ts"

/** The message of the reference; several are an error that lists them. */
export const resolve = Effect.fn("MessageReference.resolve")(function* (
  sessionID: SessionID,
  text: string
): Effect.fn.Return<MessageID, NotFound | UsageError | Effect.Effect.Error<ReturnType<Find>>, SessionStore> {
  if (text.trim() === "") return yield* new UsageError({ message: "a message is an id or a label; got an empty text" })
  const [found, ...others] = yield* (yield* SessionStore).find(sessionID, text)
  const given = oneLine(text)
  if (found === undefined) {
    return yield* new NotFound({
      message: `${sessionID} has no message or label "${given}"; daybook tree ${sessionID} lists its messages`
    })
  }
  if (others.length > 0) {
    const ids = [found, ...others].join(", ")
    return yield* new UsageError({ message: `"${given}" is more than one message: ${ids}; use more of the id` })
  }
  return found
})

type Find = SessionStore["Type"]["find"]
