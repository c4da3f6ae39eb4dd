/** Summarizes figures, compares them with their bars, and prints them. */

/** The value below which `share` of the values lie. */
export const quantile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN

export const median = (values: ReadonlyArray<number>): number => quantile(values, 0.5)

/** The rate per second since `started` (from `performance.now()`). */
export const perSecond = (count: number, started: number): number => (count * 1000) / (performance.now() - started)

export type Unit = "per second" | "µs" | "ms" | "x" | "MB" | "MB/s" | "KB" | "a turn" | "sessions" | "searches" | "%"

/** One line of the report. A bar is the value that the figure must reach. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: Unit
  readonly bar?: { readonly at: "least" | "most"; readonly value: number }
  /** Explains the value, for example names the two sides of a ratio. */
  readonly note?: string
}

/** Whether the figure meets its bar; undefined without a bar. */
export const verdict = ({ bar, value }: Figure): "pass" | "short" | undefined =>
  bar === undefined ? undefined : (bar.at === "least" ? value >= bar.value : value <= bar.value) ? "pass" : "short"

const number = (value: number): string =>
  value >= 1000 ? Math.round(value).toLocaleString("en-GB") : value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)

/** The figures as a table for a person. */
export const table = (figures: ReadonlyArray<Figure>): string => {
  const rows = figures.map((figure) => [
    figure.name,
    number(figure.value),
    figure.unit,
    figure.bar === undefined ? "" : `at ${figure.bar.at} ${figure.bar.value}`,
    verdict(figure) ?? "",
    figure.note ?? ""
  ])
  const all = [["figure", "value", "unit", "bar", "", ""], ...rows]
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? []
  const line = (row: ReadonlyArray<string>) =>
    row
      .map((cell, column) => (column === 1 ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .join("  ")
      .trimEnd()
  return all.map(line).join("\n")
}
