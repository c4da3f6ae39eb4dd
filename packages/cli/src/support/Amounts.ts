/** Reads and writes sizes, durations and counts as people write them. Strict: a unit is required. Pure. Spec: CL-201. */

const sizes: Readonly<Record<string, number>> = {
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40
}

const durations: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
  y: 365 * 86_400_000
}

/** What `sizeOf` accepts, for errors and help. */
export const sizeRule = "a number and a unit, KB, MB, GB, TB, KiB, MiB, GiB or TiB, for example 2GB"

/** What `ageOf` accepts, for errors and help. */
export const ageRule = "a whole number and a unit, h, d, w or y, for example 90d (m could mean minutes or months)"

/** What `durationOf` accepts, for errors and help. */
export const durationRule = "a whole number and a unit, m, h, d or w, for example 90d"

const amount = (text: string, pattern: RegExp, units: Readonly<Record<string, number>>): number | undefined => {
  const [, number = "", unit = ""] = pattern.exec(text) ?? []
  const factor = Object.hasOwn(units, unit) ? units[unit] : undefined
  const value = factor === undefined ? Number.NaN : Math.round(Number(number) * factor)
  return Number.isSafeInteger(value) && value > 0 ? value : undefined
}

/** The bytes of a size such as `2GB`; undefined if it is none. */
export const sizeOf = (text: string): number | undefined => amount(text, /^(\d+(?:\.\d+)?)([KMGT]i?B)$/, sizes)

/** A time at work: `42s`, `3m 5s`, `2h 7m`. */
export const timeText = (ms: number): string => {
  const seconds = Math.floor(ms / 1_000)
  const [minutes, hours] = [Math.floor(seconds / 60), Math.floor(seconds / 3_600)]
  if (hours > 0) return `${hours}h ${minutes % 60}m`
  return minutes > 0 ? `${minutes}m ${seconds % 60}s` : `${seconds}s`
}

/** The milliseconds of a duration such as `90d`; undefined if it is none. */
export const durationOf = (text: string): number | undefined => amount(text, /^(\d+)([mhdw])$/, durations)

/** The milliseconds of an age such as `90d`, without the unit that people read as months; undefined if it is none. */
export const ageOf = (text: string): number | undefined => amount(text, /^(\d+)([hdwy])$/, durations)

const decimal = ["KB", "MB", "GB", "TB"] as const

/** `12,000`. */
export const thousands = (count: number): string => String(count).replaceAll(/\B(?=(\d{3})+$)/g, ",")

export const many = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

/** A size for a person: three digits at most before the point, one after it. */
export const sizeText = (bytes: number): string => {
  if (bytes < 1000) return `${bytes} B`
  const power = Math.min(decimal.length, Math.floor(Math.log10(bytes) / 3))
  return `${(bytes / 1000 ** power).toFixed(1)} ${decimal[power - 1] ?? ""}`
}
