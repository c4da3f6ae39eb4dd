/** Refusals of Discord's REST API: a status, a code and a message, as its documentation lists them. */
import { Data } from "effect"

export class Refusal extends Data.TaggedError("Refusal")<{
  readonly status: number
  readonly code: number
  readonly message: string
  readonly errors?: unknown
}> {}

const refusal = (status: number, code: number, message: string) => () => new Refusal({ status, code, message })

export const unauthorized = refusal(401, 0, "401: Unauthorized")
export const unknownRoute = refusal(404, 0, "404: Not Found")
export const unknownChannel = refusal(404, 10003, "Unknown Channel")
export const unknownGuild = refusal(404, 10004, "Unknown Guild")
export const unknownMember = refusal(404, 10007, "Unknown Member")
export const unknownMessage = refusal(404, 10008, "Unknown Message")
export const unknownWebhook = refusal(404, 10015, "Unknown Webhook")
export const unknownInteraction = refusal(404, 10062, "Unknown interaction")
export const alreadyAcknowledged = refusal(400, 40060, "Interaction has already been acknowledged.")
export const missingAccess = refusal(403, 50001, "Missing Access")
export const notTheAuthor = refusal(403, 50005, "Cannot edit a message authored by another user")
export const emptyMessage = refusal(400, 50006, "Cannot send an empty message")
export const missingPermissions = refusal(403, 50013, "Missing Permissions")
export const expiredToken = refusal(401, 50027, "Invalid Webhook Token")
export const archivedThread = refusal(400, 50083, "Thread is archived")
export const threadExists = refusal(400, 160004, "A thread has already been created for this message")
export const lockedThread = refusal(400, 160005, "Thread is locked")
export const tooLarge = refusal(413, 40005, "Request entity too large")

/** A body that breaks the form; `field` names the place. */
export const invalidForm = (field: string, message: string) =>
  new Refusal({
    status: 400,
    code: 50035,
    message: "Invalid Form Body",
    errors: { [field]: { _errors: [{ code: "BASE_TYPE_BAD_LENGTH", message }] } }
  })
