/** The events as they are stored, with a filter. Spec: IP-16, IP-17 in specs/http.md. */
import { useEffect, useRef, useState } from "preact/hooks"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { type EventKind, kindOf, shortType, summaryOf } from "../state/EventPages.ts"
import { clockText, countText } from "../fold/Words.ts"
import type { OpenSession } from "../state/OpenSession.ts"
import { Code } from "./Markdown.tsx"
import { Empty, Text } from "./Parts.tsx"
import { VirtualList } from "./VirtualList.tsx"

const kinds: ReadonlyArray<EventKind> = ["prompt", "turn", "text", "tool", "context", "activity", "problem", "session"]
/** Milliseconds after the last key. */
const filterAfter = 200
const rowHeight = 30

const Row = ({
  event,
  isChosen,
  onChoose,
  seq
}: {
  readonly seq: number
  readonly event: SessionEvent | "absent" | undefined
  readonly isChosen: boolean
  readonly onChoose: () => void
}) => (
  <button type="button" class="event" aria-pressed={isChosen} onClick={onChoose}>
    <span class="seq">{seq}</span>
    {event === undefined || event === "absent" ? (
      <span class="soft">{event === undefined ? "…" : "not sent"}</span>
    ) : (
      <>
        <span class="clock">{clockText(event.created)}</span>
        <span class={`type kind-${kindOf(event.type)}`}>{shortType(event.type)}</span>
        <span class="summary">
          <Text>{summaryOf(event)}</Text>
        </span>
      </>
    )}
  </button>
)

const Details = ({ event, onClose }: { readonly event: SessionEvent; readonly onClose: () => void }) => (
  <aside class="details" aria-label={`Event ${event.seq}`}>
    <header>
      <h3>
        {event.seq} {shortType(event.type)}
      </h3>
      <button type="button" onClick={onClose}>
        Close
      </button>
    </header>
    <Code language="json" text={JSON.stringify(event, undefined, 2)} />
  </aside>
)

const Filter = ({ session }: { readonly session: OpenSession }) => {
  const [text, setText] = useState("")
  const [chosen, setChosen] = useState<ReadonlyArray<EventKind>>([])
  const isFirst = useRef(true)
  useEffect(() => {
    if (isFirst.current) return void (isFirst.current = false)
    const timer = setTimeout(() => session.filter({ text, kinds: chosen }), filterAfter)
    return () => clearTimeout(timer)
  }, [text, chosen])
  const matching = session.matching.value
  return (
    <div class="bar">
      <label class="grow">
        <span class="hidden">Filter events</span>
        <input
          type="search"
          placeholder="Filter events"
          data-filter
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      <div class="chips" role="group" aria-label="Kinds of events">
        {kinds.map((kind) => (
          <button
            key={kind}
            type="button"
            class="chip"
            aria-pressed={chosen.includes(kind)}
            onClick={() =>
              setChosen(chosen.includes(kind) ? chosen.filter((each) => each !== kind) : [...chosen, kind])
            }
          >
            {kind}
          </button>
        ))}
      </div>
      <span class="soft" role="status">
        {matching === undefined
          ? countText(session.head.value + 1, "event")
          : `${countText(matching.length, "event")} found`}
      </span>
    </div>
  )
}

export const EventsView = ({ at, session }: { readonly session: OpenSession; readonly at: number | undefined }) => {
  const [chosen, choose] = useState<number | undefined>(at)
  useEffect(() => choose(at), [at])
  useEffect(() => () => session.filter({ text: "", kinds: [] }), [session])
  // Read, so that a page that arrived is drawn.
  const version = session.pages.version.value
  const matching = session.matching.value
  const count = matching?.length ?? session.head.value + 1
  const seqAt = (index: number): number => matching?.[index] ?? index
  const event = chosen === undefined ? undefined : session.pages.at(chosen)
  return (
    <div class="events" data-version={version}>
      <Filter session={session} />
      <div class="beside">
        {count === 0 ? (
          <Empty>{matching === undefined ? "No event yet." : "No event passes the filter."}</Empty>
        ) : (
          <VirtualList
            label="Events"
            class="event-list"
            count={count}
            estimate={rowHeight}
            fixed
            stick={matching === undefined}
            at={matching === undefined ? at : undefined}
            keyOf={seqAt}
            row={(index) => {
              const seq = seqAt(index)
              return (
                <Row seq={seq} event={session.pages.at(seq)} isChosen={seq === chosen} onChoose={() => choose(seq)} />
              )
            }}
          />
        )}
        {event === undefined || event === "absent" ? undefined : (
          <Details event={event} onClose={() => choose(undefined)} />
        )}
      </div>
    </div>
  )
}
