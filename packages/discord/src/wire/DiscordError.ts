/** Why Discord did not do what a request asked, by what the bot does next. Spec: DI-60..DI-66 in specs/discord.md. */
import { DiscordAPIError, HTTPError, RateLimitError } from "discord.js"
import { Match, Predicate, Schema } from "effect"

/**
 * `lost`: nobody knows whether it was done. `refused`: the bot may not. `channel-gone`, `message-gone`: it was deleted.
 * `archived`: the thread takes no changes. `unauthorized`: the token is not valid. `invalid`: the request itself is wrong.
 * `done-before`: it was done by an earlier request.
 */
export const Reason = Schema.Literal(
  "lost",
  "refused",
  "channel-gone",
  "message-gone",
  "archived",
  "unauthorized",
  "invalid",
  "done-before"
)
export type Reason = typeof Reason.Type

export class DiscordError extends Schema.TaggedError<DiscordError>("@daybook/discord/DiscordError")("DiscordError", {
  reason: Reason,
  /** Discord's number for the error; 0 for none. */
  code: Schema.Int,
  status: Schema.Int,
  details: Schema.String
}) {
  override get message() {
    const code = this.code === 0 ? "" : ` (${this.code})`
    return `Discord: ${this.details}${code}`
  }
}

const byCode: Readonly<Record<number, Reason>> = {
  10_003: "channel-gone",
  10_008: "message-gone",
  10_062: "message-gone",
  40_060: "done-before",
  50_001: "refused",
  50_013: "refused",
  50_083: "archived",
  160_004: "done-before",
  160_005: "refused"
}

const byStatus = (status: number): Reason =>
  Match.value(status).pipe(
    Match.when(401, () => "unauthorized" as const),
    Match.when(403, () => "refused" as const),
    Match.whenOr(408, 429, () => "lost" as const),
    Match.when(
      (status) => status >= 500,
      () => "lost" as const
    ),
    Match.orElse(() => "invalid" as const)
  )

/** The error for what discord.js threw. It holds nothing of the request, and so no token. */
export const fromThrown = (thrown: unknown): DiscordError => {
  if (thrown instanceof DiscordAPIError) {
    const code = typeof thrown.code === "number" ? thrown.code : 0
    const reason = byCode[code] ?? byStatus(thrown.status)
    return new DiscordError({ reason, code, status: thrown.status, details: thrown.message })
  }
  if (thrown instanceof HTTPError) {
    return new DiscordError({
      reason: byStatus(thrown.status),
      code: 0,
      status: thrown.status,
      details: `it answered with ${thrown.status}`
    })
  }
  const details =
    thrown instanceof RateLimitError
      ? "its rate limit is used up"
      : Predicate.isError(thrown)
        ? `it cannot be reached (${thrown.message})`
        : "it cannot be reached"
  return new DiscordError({ reason: "lost", code: 0, status: 0, details })
}
