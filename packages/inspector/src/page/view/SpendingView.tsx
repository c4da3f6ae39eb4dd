/** Tokens, cost and the budget left, as plots over time and as a table. Spec: IP-14 in specs/http.md. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import uPlot from "uplot"
import type { SessionUsage } from "@daybook/core/session/SessionOptions"
import type { Tokens, Usage } from "@daybook/log/domain/Values"
import type { Spending, RequestCost } from "../fold/Story.ts"
import { clockText, costText, dateText, tokensText } from "../fold/Words.ts"
import type { OpenSession } from "../state/OpenSession.ts"
import { hrefOf } from "../state/Route.ts"
import { theme } from "../state/Theme.ts"
import { Empty, Table } from "./Parts.tsx"

interface Line {
  readonly label: string
  /** The name of a colour. */
  readonly color: string
  readonly value: (point: RequestCost) => number | undefined
  readonly bars?: boolean
}

interface PlotProps {
  readonly title: string
  readonly points: ReadonlyArray<RequestCost>
  readonly lines: ReadonlyArray<Line>
  /** By number of the request instead of its time. */
  readonly byNumber?: boolean
  readonly text: (value: number) => string
}

const plotHeight = 220

/** Times of an axis; the date where a day begins. */
const timesText = (times: ReadonlyArray<number>): Array<string> => {
  let day = ""
  return times.map((seconds) => {
    const date = new Date(seconds * 1_000)
    const own = date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })
    const time = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })
    const text = own === day ? time : `${time}\n${own}`
    day = own
    return text
  })
}

/** A plot over time. Screen readers get the table below it. */
const Plot = ({ byNumber = false, lines, points, text, title }: PlotProps) => {
  const host = useRef<HTMLDivElement>(null)
  const data = useMemo(
    (): uPlot.AlignedData => [
      points.map(({ at }, index) => (byNumber ? index + 1 : at / 1_000)),
      ...lines.map(({ value }) => points.map((point) => value(point) ?? null))
    ],
    [points, points.length]
  )
  const plot = useRef<uPlot | undefined>(undefined)
  useEffect(() => {
    const element = host.current
    if (element === null) return
    const style = getComputedStyle(element)
    const color = (name: string) => style.getPropertyValue(`--${name}`).trim()
    const axis = {
      stroke: color("soft"),
      grid: { stroke: color("line"), width: 1 },
      ticks: { stroke: color("line"), width: 1 }
    }
    const bars = uPlot.paths.bars?.({ size: [0.8, 40] })
    const steps = uPlot.paths.stepped?.({ align: 1 })
    const made = new uPlot(
      {
        width: Math.max(240, element.clientWidth),
        height: plotHeight,
        cursor: { y: false },
        scales: {
          x: byNumber ? { time: false, range: (_plot, from, to) => [from - 0.6, to + 0.6] } : {},
          y: { range: (_plot, _from, to) => [0, Math.max(to * 1.1, 1e-6)] }
        },
        axes: [
          {
            ...axis,
            font: `12px ${style.fontFamily}`,
            space: 90,
            ...(byNumber
              ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000] }
              : { values: (_plot: uPlot, times: ReadonlyArray<number>) => timesText(times) })
          },
          { ...axis, font: `12px ${style.fontFamily}`, size: 64, values: (_plot, values) => values.map(text) }
        ],
        series: [
          {
            label: byNumber ? "Request" : "Time",
            value: (_plot, at) => (at === null ? "" : byNumber ? String(at) : dateText(at * 1_000))
          },
          ...lines.map(({ bars: isBars = false, color: name, label }): uPlot.Series => ({
            label,
            stroke: color(name),
            ...(isBars
              ? { fill: color(name), ...(bars === undefined ? {} : { paths: bars }) }
              : { width: 2, ...(steps === undefined ? {} : { paths: steps }) }),
            points: { show: points.length < 40 && !isBars },
            value: (_plot, value) => (value === null ? "" : text(value))
          }))
        ]
      },
      data,
      element
    )
    plot.current = made
    const observer = new ResizeObserver(() =>
      made.setSize({ width: Math.max(240, element.clientWidth), height: plotHeight })
    )
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
    }
  }, [theme.value])
  useEffect(() => plot.current?.setData(data), [data])
  return (
    <figure class="plot">
      <figcaption>{title}</figcaption>
      <div ref={host} aria-hidden="true" />
    </figure>
  )
}

const countOf = ({ input, output, reasoning }: Tokens): number => input + output + reasoning

/** What the session and its children spent, asked for again after each request. */
const useUsage = (session: OpenSession, requests: number): SessionUsage | undefined => {
  const [usage, set] = useState<SessionUsage | undefined>(undefined)
  useEffect(() => {
    let isGone = false
    session.api.get<SessionUsage>(`${session.path}/usage`).then(
      (found) => !isGone && set(found),
      // The next request asks again.
      () => undefined
    )
    return () => void (isGone = true)
  }, [session, requests])
  return usage
}

const hasChildren = ({ own, total }: SessionUsage): boolean =>
  total.cost > own.cost || countOf(total.tokens) > countOf(own.tokens)

/** What is left of a budget after the session, or after it and its children. */
const budgetText = ({ budget, points }: Spending, total: Usage | undefined): string => {
  const last = points.at(-1)
  const left = (most: number, spent: number | undefined, own: number | undefined) =>
    spent === undefined ? (own ?? most) : Math.max(0, most - spent)
  const { cost, tokens } = budget
  const parts = [
    ...(cost === undefined ? [] : [costText(left(cost, total?.cost, last?.costLeft))]),
    ...(tokens === undefined
      ? []
      : [`${tokensText(left(tokens, total && countOf(total.tokens), last?.tokensLeft))} tokens`])
  ]
  return parts.length === 0 ? "no budget" : parts.join(", ")
}

const Numbers = ({ spending, usage }: { readonly spending: Spending; readonly usage: SessionUsage | undefined }) => {
  const { points, totalCost, totalTokens } = spending
  const input = points.reduce((sum, each) => sum + each.input, 0)
  const cached = points.reduce((sum, each) => sum + each.cached, 0)
  const facts: ReadonlyArray<readonly [string, string]> = [
    ["Cost", costText(totalCost)],
    ["Tokens", tokensText(totalTokens)],
    ["Requests", points.length.toLocaleString("en-US")],
    ["Read from cache", input === 0 ? "–" : `${Math.round((100 * cached) / input)} %`],
    ["Budget left", budgetText(spending, usage?.total)],
    ...(usage === undefined || !hasChildren(usage)
      ? []
      : [
          ["Cost with children", costText(usage.total.cost)] as const,
          ["Tokens with children", tokensText(countOf(usage.total.tokens))] as const
        ])
  ]
  return (
    <dl class="numbers">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

const Most = ({ points, sessionID }: { readonly points: ReadonlyArray<RequestCost>; readonly sessionID: string }) => (
  <section class="longest" aria-label="Largest requests">
    <h3>Largest requests</h3>
    <Table
      names={["Event", "Time", "Input#", "From cache#", "Output#", "Cost#"]}
      rows={[...points]
        .sort((a, b) => b.cost - a.cost || b.input + b.output - a.input - a.output)
        .slice(0, 12)
        .map(({ at, cached, cost, input, output, seq }) => [
          <a href={hrefOf(sessionID, "requests", seq)}>{seq}</a>,
          clockText(at),
          ...[input, cached, output].map(tokensText),
          costText(cost)
        ])}
    />
  </section>
)

export const SpendingView = ({ session }: { readonly session: OpenSession }) => {
  useEffect(() => session.needStory(), [session])
  const version = session.storyVersion.value
  const { spending } = session.story
  const points = useMemo(() => [...spending.points], [version])
  const usage = useUsage(session, points.length)
  if (points.length === 0) {
    return <Empty>{session.storyState.value === "live" ? "Nothing was spent yet." : "Reading the history…"}</Empty>
  }
  const hasBudget = points.some(({ costLeft, tokensLeft }) => costLeft !== undefined || tokensLeft !== undefined)
  return (
    <div class="scroller spending" tabIndex={0} role="region" aria-label="Spending">
      <Numbers spending={spending} usage={usage} />
      <div class="plots">
        <Plot
          title="Tokens of each request"
          byNumber
          points={points}
          text={tokensText}
          lines={[
            { label: "Input", color: "lane-turn", value: ({ input }) => input, bars: true },
            { label: "From cache", color: "lane-activity", value: ({ cached }) => cached, bars: true },
            { label: "Output", color: "lane-tool", value: ({ output }) => output, bars: true }
          ]}
        />
        <Plot
          title="Cost so far"
          points={points}
          text={costText}
          lines={[{ label: "Cost", color: "accent", value: ({ totalCost }) => totalCost }]}
        />
        <Plot
          title="Tokens so far"
          points={points}
          text={tokensText}
          lines={[{ label: "Tokens", color: "accent", value: ({ totalTokens }) => totalTokens }]}
        />
        {hasBudget ? (
          <Plot
            title="Budget left"
            points={points}
            text={spending.budget.cost === undefined ? tokensText : costText}
            lines={[
              {
                label: "Left",
                color: "warn",
                value: ({ costLeft, tokensLeft }) => (spending.budget.cost === undefined ? tokensLeft : costLeft)
              }
            ]}
          />
        ) : undefined}
      </div>
      <Most points={points} sessionID={session.id} />
    </div>
  )
}
