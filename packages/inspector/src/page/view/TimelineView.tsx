/** The timeline as a picture that can be zoomed, and the longest spans as a table. Spec: IP-12 in specs/http.md. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"
import {
  axisHeight,
  type Box,
  boxAt,
  boxesOf,
  endOf,
  heightOf,
  lanePlaces,
  longestSpans,
  moved,
  scaleOf,
  type Span,
  ticks,
  type Timeline,
  type TimeScale,
  type Window,
  zoomed
} from "../fold/Timeline.ts"
import { clockText, countText, dateText, durationText, visible } from "../fold/Words.ts"
import type { OpenSession } from "../state/OpenSession.ts"
import { hrefOf } from "../state/Route.ts"
import { theme } from "../state/Theme.ts"
import { Badge, Empty, Table, Text, type Tone } from "./Parts.tsx"

const tones: Readonly<Record<Span["outcome"], Tone>> = {
  running: "live",
  waiting: "warn",
  completed: "good",
  failed: "bad",
  interrupted: "warn",
  withdrawn: "plain"
}

const labelWidth = 92

interface Picture {
  readonly boxes: ReadonlyArray<Box>
  readonly timeline: Timeline
  readonly scale: TimeScale
  readonly window: Window
  readonly width: number
  readonly chosen: Span | undefined
}

const draw = (canvas: HTMLCanvasElement, { boxes, chosen, scale, timeline, width, window }: Picture): void => {
  const places = lanePlaces(timeline)
  const height = heightOf(places)
  const ratio = devicePixelRatio
  canvas.width = Math.round((width + labelWidth) * ratio)
  canvas.height = Math.round(height * ratio)
  const context = canvas.getContext("2d")
  if (context === null) return
  const style = getComputedStyle(canvas)
  const color = (name: string) => style.getPropertyValue(`--${name}`)
  context.scale(ratio, ratio)
  context.font = `12px ${style.fontFamily}`
  context.textBaseline = "middle"
  for (const { height, lane, y } of places) {
    context.fillStyle = color("sunken")
    context.fillRect(labelWidth, y - 4, width, height + 8)
    context.fillStyle = color("soft")
    context.fillText(lane, 0, y + 10)
  }
  context.save()
  context.beginPath()
  context.rect(labelWidth, 0, width, height)
  context.clip()
  context.translate(labelWidth, 0)
  const perMs = width / Math.max(1, window.to - window.from)
  for (const at of ticks(window, width, 96)) {
    if (scale.pauses.some(({ before }) => at > before && at < before + scale.pauseLength)) continue
    const x = Math.round((at - window.from) * perMs) + 0.5
    context.fillStyle = color("line")
    context.fillRect(x - 0.5, axisHeight - 6, 1, height)
    context.fillStyle = color("soft")
    context.fillText(clockText(scale.timeAt(at)), x + 4, 10)
  }
  for (const pause of scale.pauses) {
    const x = (pause.before - window.from) * perMs
    context.fillStyle = color("line")
    const wide = Math.max(2, scale.pauseLength * perMs)
    context.fillRect(x, axisHeight, wide, height)
    const text = durationText(pause.to - pause.from)
    if (context.measureText(text).width > wide - 6) continue
    context.fillStyle = color("soft")
    context.fillText(text, x + 4, height - 10)
  }
  for (const box of boxes) {
    const { height, span, width, x, y } = box
    context.fillStyle = span.outcome === "failed" ? color("bad") : color(`lane-${span.lane}`)
    context.globalAlpha = span.outcome === "running" || span.outcome === "waiting" ? 0.6 : 1
    context.fillRect(x, y, Math.max(1, width - 1), height)
    context.globalAlpha = 1
    if (span === chosen) {
      context.strokeStyle = color("ink")
      context.lineWidth = 2
      context.strokeRect(x, y, Math.max(2, width - 1), height)
    }
    if (width > 40) {
      context.save()
      context.beginPath()
      context.rect(Math.max(0, x), y, width - 6, height)
      context.clip()
      context.fillStyle = color("on-lane")
      context.fillText(visible(span.label), Math.max(0, x) + 5, y + height / 2 + 1)
      context.restore()
    }
  }
  context.restore()
}

const useWidth = () => {
  const element = useRef<HTMLDivElement>(null)
  const [width, set] = useState(0)
  useLayoutEffect(() => {
    if (element.current === null) return
    const observer = new ResizeObserver(([entry]) =>
      set(Math.max(0, Math.floor((entry?.contentRect.width ?? 0) - labelWidth)))
    )
    observer.observe(element.current)
    return () => observer.disconnect()
  }, [])
  return { element, width }
}

const About = ({
  sessionID,
  span,
  timeline
}: {
  readonly span: Span | undefined
  readonly sessionID: string
  readonly timeline: Timeline
}) => (
  <p class="about" role="status">
    {span === undefined ? (
      <span class="soft">
        Wheel or <kbd>+</kbd> <kbd>-</kbd> zooms, drag or <kbd>Shift</kbd> with arrows moves, arrows choose a span,{" "}
        <kbd>0</kbd> shows all.
      </span>
    ) : (
      <>
        <Badge tone={tones[span.outcome]}>{span.outcome}</Badge> <strong>{span.lane}</strong> <Text>{span.label}</Text>
        <span class="soft">
          {dateText(span.start)}, {durationText(endOf(span, timeline) - span.start)}
        </span>
        <a href={hrefOf(sessionID, "transcript", span.seq)}>transcript</a>
        {span.lane === "turn" ? <a href={hrefOf(sessionID, "requests", span.seq)}>request</a> : undefined}
        <a href={hrefOf(sessionID, "events", span.seq)}>event {span.seq}</a>
      </>
    )}
  </p>
)

const Longest = ({ onChoose, timeline }: { readonly timeline: Timeline; readonly onChoose: (span: Span) => void }) => (
  <section aria-label="Longest turns and tools" class="longest">
    <h3>Longest turns, tools and compactions</h3>
    <Table
      names={["What", "Kind", "Began", "Took#", "Outcome"]}
      rows={longestSpans(timeline.spans, ["turn", "tool", "compaction"], timeline.last, 12).map((span) => [
        <button type="button" class="link" onClick={() => onChoose(span)}>
          <Text>{span.label}</Text>
        </button>,
        span.lane,
        clockText(span.start),
        durationText(endOf(span, timeline) - span.start),
        span.outcome
      ])}
    />
  </section>
)

export const TimelineView = ({ session }: { readonly session: OpenSession }) => {
  useEffect(() => session.needStory(), [session])
  const version = session.storyVersion.value
  const { timeline } = session.story
  const { element, width } = useWidth()
  const canvas = useRef<HTMLCanvasElement>(null)
  const scale = useMemo(() => scaleOf(timeline), [version])
  const [zoom, setZoom] = useState<Window | undefined>(undefined)
  const [chosen, choose] = useState<Span | undefined>(undefined)
  const window = zoom ?? { from: 0, to: scale.length }
  const boxes = useMemo(() => boxesOf(timeline, scale, window, width), [version, scale, window.from, window.to, width])
  useLayoutEffect(() => {
    if (canvas.current !== null && width > 0) draw(canvas.current, { boxes, timeline, scale, window, width, chosen })
  }, [boxes, chosen, theme.value])
  const [dragged, drag] = useState<number | undefined>(undefined)
  const point = (event: MouseEvent) => {
    const box = canvas.current?.getBoundingClientRect()
    return { x: event.clientX - (box?.left ?? 0) - labelWidth, y: event.clientY - (box?.top ?? 0) }
  }
  const show = (span: Span) => {
    choose(span)
    const [start, end] = [scale.drawn(span.start), scale.drawn(endOf(span, timeline))]
    const size = Math.max((end - start) * 3, 2_000)
    setZoom(zoomed({ from: (start + end - size) / 2, to: (start + end + size) / 2 }, 1, 0.5, scale.length))
  }
  useEffect(() => {
    const target = canvas.current
    // Not passive: the page does not scroll while the picture zooms.
    const wheel = (event: WheelEvent) => {
      event.preventDefault()
      setZoom((now) => {
        const from = now ?? { from: 0, to: scale.length }
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          return moved(from, (event.deltaX || event.deltaY) / Math.max(1, width), scale.length)
        }
        return zoomed(from, Math.exp(event.deltaY / 400), point(event).x / Math.max(1, width), scale.length)
      })
    }
    target?.addEventListener("wheel", wheel, { passive: false })
    return () => target?.removeEventListener("wheel", wheel)
  }, [scale, width])
  const pressed = (event: KeyboardEvent) => {
    const by = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0
    if (event.altKey) return
    if (by !== 0 && event.shiftKey) setZoom(moved(window, by * 0.2, scale.length))
    else if (by !== 0) {
      const at = chosen === undefined ? (by > 0 ? -1 : timeline.spans.length) : timeline.spans.indexOf(chosen)
      const next = timeline.spans[at + by]
      if (next !== undefined) choose(next)
    } else if (event.key === "+" || event.key === "=") setZoom(zoomed(window, 0.7, 0.5, scale.length))
    else if (event.key === "-") setZoom(zoomed(window, 1 / 0.7, 0.5, scale.length))
    else if (event.key === "0") setZoom(undefined)
    else if (event.key === "Enter" && chosen !== undefined) show(chosen)
    else return
    event.preventDefault()
  }
  const isEmpty = timeline.spans.length === 0
  const summary = `${countText(session.story.turns.length, "turn")}, ${countText(timeline.spans.filter(({ lane }) => lane === "tool").length, "tool call")}, ${durationText(timeline.last - (timeline.first ?? timeline.last))} from first to last event`
  return (
    <div class="scroller timeline" ref={element} tabIndex={0} role="region" aria-label="Timeline">
      <div class="bar">
        <span>{summary}</span>
        <span class="soft" role="status">
          {session.storyState.value === "live" ? "" : `Reading the history, ${countText(session.story.count, "event")}`}
        </span>
        <span class="grow" />
        <button type="button" aria-label="Zoom in" onClick={() => setZoom(zoomed(window, 0.6, 0.5, scale.length))}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => setZoom(zoomed(window, 1 / 0.6, 0.5, scale.length))}>
          −
        </button>
        <button type="button" onClick={() => setZoom(undefined)}>
          All
        </button>
      </div>
      {isEmpty ? <Empty>Nothing happened yet.</Empty> : undefined}
      <canvas
        ref={canvas}
        hidden={isEmpty}
        style={{ width: `${width + labelWidth}px`, height: `${heightOf(lanePlaces(timeline))}px` }}
        tabIndex={0}
        role="application"
        aria-label={`Picture of the timeline: ${summary}. Shown: ${dateText(scale.timeAt(window.from))} to ${dateText(scale.timeAt(window.to))}`}
        onKeyDown={pressed}
        onPointerDown={(event) => {
          drag(event.clientX)
          const { x, y } = point(event)
          choose(boxAt(boxes, x, y)?.span)
          event.currentTarget.setPointerCapture(event.pointerId)
        }}
        onPointerMove={(event) => {
          if (dragged === undefined) return
          setZoom(moved(window, (dragged - event.clientX) / Math.max(1, width), scale.length))
          drag(event.clientX)
        }}
        onPointerUp={() => drag(undefined)}
        onDblClick={() => chosen !== undefined && show(chosen)}
      />
      {isEmpty ? undefined : (
        <>
          <About span={chosen} sessionID={session.id} timeline={timeline} />
          <Longest timeline={timeline} onChoose={show} />
        </>
      )}
    </div>
  )
}
