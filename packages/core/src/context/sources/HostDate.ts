/** The host's date, in the host's time zone. Spec: specs/context.md CX-21. */
import { Clock, Effect, Schema } from "effect"
import { available, source, type ContextSource } from "../SystemContext.ts"

const twoDigits = (part: number): string => String(part).padStart(2, "0")

/** `Date` has the host's time zone; the zone of Effect's `DateTime` takes 25 ms to create. */
const today = Effect.map(Clock.currentTimeMillis, (now) => {
  const date = new Date(now)
  return [String(date.getFullYear()), twoDigits(date.getMonth() + 1), twoDigits(date.getDate())].join("-")
})

export const hostDate: ContextSource = source({
  key: "daybook/date",
  schema: Schema.String,
  load: () => Effect.map(today, available),
  baseline: (date) => `Today's date is ${date}.`,
  update: (_, date) => `Today's date is ${date} now.`
})
