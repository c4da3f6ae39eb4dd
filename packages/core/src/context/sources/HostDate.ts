/** The host's date, in the host's time zone. Spec: specs/context.md CX-21. */
import { Clock, DateTime, Effect, Schema } from "effect"
import { available, source, type ContextSource } from "../SystemContext.ts"

const localZone = DateTime.zoneMakeLocal()

const today = Effect.map(Clock.currentTimeMillis, (now) =>
  DateTime.formatIsoDate(DateTime.setZone(DateTime.unsafeMake(now), localZone))
)

export const hostDate: ContextSource = source({
  key: "daybook/date",
  schema: Schema.String,
  load: () => Effect.map(today, available),
  baseline: (date) => `Today's date is ${date}.`,
  update: (_, date) => `Today's date is ${date} now.`
})
