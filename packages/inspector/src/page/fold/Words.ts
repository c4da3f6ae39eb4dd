/** How numbers and times are written. Pure. Spec: IP-10 in specs/inspector.md. */

/** `950 ms`, `3.4 s`, `2 min 5 s`, `3 h 12 min`, `4 d 2 h`. */
export const durationText = (milliseconds: number): string => {
  const ms = Math.max(0, Math.round(milliseconds))
  if (ms < 1_000) return `${ms} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  const [seconds, minutes, hours] = [Math.floor(ms / 1_000), Math.floor(ms / 60_000), Math.floor(ms / 3_600_000)]
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`
  if (hours < 24) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`
  return hours % 24 === 0 ? `${Math.floor(hours / 24)} d` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

/** How long ago a time is: `just now`, `12 s ago`, `3 min ago`, `2 h ago`, `5 d ago`. */
export const agoText = (at: number, now: number): string => {
  const seconds = Math.max(0, Math.floor((now - at) / 1_000))
  if (seconds < 5) return "just now"
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`
  return `${Math.floor(seconds / 86_400)} d ago`
}

/** `1 turn`, `2 turns`, `12,000 turns`. */
export const countText = (count: number, one: string): string =>
  `${count.toLocaleString("en-US")} ${one}${count === 1 ? "" : "s"}`

/** `$0`, `$0.0042`, `$1.23`, `$1,234.50`. */
export const costText = (cost: number): string => {
  if (cost === 0) return "$0"
  const digits = Math.abs(cost) < 0.1 ? 4 : 2
  return `$${cost.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`
}

/** `950`, `12.3k`, `4.1M`. */
export const tokensText = (tokens: number): string => {
  if (tokens < 1_000) return String(Math.round(tokens))
  return tokens < 1_000_000 ? `${(tokens / 1_000).toFixed(1)}k` : `${(tokens / 1_000_000).toFixed(1)}M`
}

/** The last folder of a path. */
export const folderText = (path: string): string => path.split("/").findLast((part) => part !== "") ?? path

/** `14:02:33`. */
export const clockText = (at: number): string => new Date(at).toLocaleTimeString("en-GB")

/** `26 Nov 2026, 14:02:33`. */
export const dateText = (at: number): string =>
  new Date(at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" })
