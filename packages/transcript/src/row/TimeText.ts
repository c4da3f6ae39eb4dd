/** Formats the times of rows. Pure. Spec: FI-5 in specs/files.md (DC-4). */

const firstTime = Date.parse("0000-01-01T00:00:00.000Z")

const lastTime = Date.parse("9999-12-31T23:59:59.999Z")

const minute = 60_000

/** The last minute formatted, and its text up to the seconds. Successive events mostly share a minute. */
let last = { minute: Number.NaN, text: "" }

const textOfMinute = (at: number): string => {
  if (last.minute !== at) last = { minute: at, text: new Date(at * minute).toISOString().slice(0, 17) }
  return last.text
}

/** RFC 3339 in UTC with milliseconds (DC-4). Times outside the years 0000 to 9999 are clamped. */
export const timeText = (ms: number): string => {
  const at = Math.trunc(Math.min(Math.max(ms, firstTime), lastTime))
  const whole = Math.floor(at / minute)
  const rest = String(at - whole * minute).padStart(5, "0")
  return `${textOfMinute(whole)}${rest.slice(0, 2)}.${rest.slice(2)}Z`
}
