/** Clamps a requested number to a whole number from 1 to `most`. Absent or NaN: the fallback. */
export const clamp = (requested: number | undefined, fallback: number, most: number): number =>
  requested === undefined || Number.isNaN(requested) ? fallback : Math.max(1, Math.min(Math.trunc(requested), most))
