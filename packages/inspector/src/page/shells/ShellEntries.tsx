/**
 * Shows the events of the chosen shell: a window of them, so that the document stays small. It follows the newest one until the
 * reader scrolls up. Spec: SL-225..SL-228 in specs/shell.md.
 */
import { type ComponentChildren, Fragment, type VNode } from "preact"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { EventOfType } from "@daybook/log/events/SessionEvents"
import { blockText, durationText } from "@daybook/shell/record/WatchText"
import { countText, visible } from "../fold/Words.ts"
import { Text } from "../view/Parts.tsx"
import type { Entry } from "./ShellBook.ts"
import { droppedText, filesText, fold, hiddenText, reasonText } from "./ShellTexts.ts"

type Executed = EventOfType<"session.next.shell.executed">["data"]

/** Events in the document, and how many a click adds. */
const [mostShown, step] = [300, 100]
/** Pixels from the end that count as the end. */
const near = 40
/** Places that are marked. */
const mostMarked = 2_000

const Time = ({ at }: { readonly at: number }) => {
  const date = new Date(at)
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" })}
    </time>
  )
}

const whole = new WeakMap<Entry, Set<string>>()

interface Showing {
  readonly entry: Entry
  /** The text to find, which is shown also in a folded text. */
  readonly pattern: RegExp | undefined
}

/** A text whose middle is folded if it is long; a click shows the whole text, another one folds it again. */
const Folding = ({ entry, name, pattern, text }: Showing & { readonly name: string; readonly text: string }) => {
  const names = whole.get(entry) ?? new Set()
  whole.set(entry, names)
  const [isWhole, setWhole] = useState(names.has(name))
  const body = useRef<HTMLSpanElement>(null)
  const isMoved = useRef(false)
  useLayoutEffect(() => {
    // The reader goes on where the hidden part was.
    if (isMoved.current) body.current?.querySelector("button")?.focus({ preventScroll: true })
  }, [isWhole])
  const pieces = fold(text, pattern)
  if (pieces === undefined) return <>{visible(text)}</>
  const button = (words: string) => (
    <button
      type="button"
      class="fold"
      aria-expanded={isWhole}
      onClick={() => {
        isMoved.current = true
        if (!names.delete(name)) names.add(name)
        setWhole(!isWhole)
      }}
    >
      {words}
    </button>
  )
  return (
    <span class="body" ref={body}>
      {isWhole ? (
        <>
          {visible(text)}
          {button("Show less")}
        </>
      ) : (
        pieces.map((piece, at) => (
          <Fragment key={at}>{typeof piece === "string" ? visible(piece) : button(hiddenText(piece))}</Fragment>
        ))
      )}
    </span>
  )
}

interface OutputProps extends Showing {
  readonly kind: "late" | "out" | "err"
  readonly label: string
  readonly text: string | undefined
}

/** What a command printed; `label` says which stream it is. */
const Output = ({ kind, label, text = "", ...showing }: OutputProps) =>
  text === "" ? null : (
    <figure class={`output ${kind}`} aria-label={label}>
      {kind === "out" ? null : <figcaption>{label}</figcaption>}
      <pre>
        <Folding {...showing} name={kind} text={text} />
      </pre>
    </figure>
  )

interface PromptProps extends Showing {
  readonly command: string
  readonly children: ComponentChildren
}

const Prompt = ({ children, command, ...showing }: PromptProps) => (
  <div class="line">
    <div class="prompt">
      {showing.entry.folder === undefined ? null : <bdi class="folder">{visible(showing.entry.folder)}</bdi>}
      <span class="sigil" aria-hidden="true">
        $
      </span>
      <code class="command">
        <Folding {...showing} name="command" text={command} />
      </code>
    </div>
    <div class="end">{children}</div>
  </div>
)

const endText = ({ exitCode, timedOut }: Executed): string =>
  timedOut === true ? `timed out, exit ${exitCode}` : `exit ${exitCode}`

const Ran = ({ data, entry, pattern }: Showing & { readonly data: Executed }) => (
  <>
    <Prompt entry={entry} pattern={pattern} command={data.command}>
      <span class={`ending ${data.exitCode === 0 && data.timedOut !== true ? "good" : "bad"}`}>{endText(data)}</span>
      <span class="took">{durationText(data.durationMs)}</span>
      <Time at={entry.event.created} />
    </Prompt>
    <Output
      entry={entry}
      pattern={pattern}
      kind="late"
      label="Printed late by earlier commands"
      text={data.lateOutput}
    />
    <Output entry={entry} pattern={pattern} kind="out" label="Output" text={data.stdout} />
    <Output entry={entry} pattern={pattern} kind="err" label="Errors" text={data.stderr} />
    {data.truncated ? (
      <p class="note">
        The recorded output is shortened
        {data.output === undefined ? null : (
          <>
            ; the whole is kept as <code>{visible(data.output)}</code>
          </>
        )}
        .
      </p>
    ) : null}
  </>
)

/** An event without a command, on a line. */
const Mark = ({
  at,
  children,
  what
}: {
  readonly at: number
  readonly what: string
  readonly children: ComponentChildren
}) => (
  <div class="line mark">
    <div class="what">
      <strong>{what}</strong>
      {children}
    </div>
    <div class="end">
      <Time at={at} />
    </div>
  </div>
)

/** Texts that may be absent, each behind a space. */
const texts = (...given: ReadonlyArray<string | undefined>) =>
  given.flatMap((text, at) =>
    text === undefined || text === ""
      ? []
      : [
          <Fragment key={at}>
            {" "}
            <Text>{text}</Text>
          </Fragment>
        ]
  )

const contentOf = (entry: Entry, pattern: RegExp | undefined): readonly [kind: string, content: VNode] => {
  const { event } = entry
  switch (event.type) {
    case "session.next.shell.executed":
      return [
        event.data.exitCode === 0 ? "ran" : "ran failing",
        <Ran key="ran" entry={entry} pattern={pattern} data={event.data} />
      ]
    case "session.next.shell.blocked":
      return [
        "blocked",
        <Fragment key="blocked">
          <Prompt entry={entry} pattern={pattern} command={event.data.command}>
            <span class="ending warn">blocked</span>
            <Time at={event.created} />
          </Prompt>
          <p class="reason">Not run, {visible(blockText(event.data))}</p>
        </Fragment>
      ]
    case "session.next.shell.opened":
      return [
        "opened",
        <Mark key="opened" what="Opened" at={event.created}>
          {texts(event.data.transport, event.data.title, event.data.cwd)}
        </Mark>
      ]
    case "session.next.shell.checkpointed":
      return [
        "checkpoint",
        <Mark key="made" what="Checkpoint" at={event.created}>
          {" "}
          <code>{visible(event.data.checkpointID)}</code>
          {texts(event.data.label)}
        </Mark>
      ]
    case "session.next.shell.restored":
      return [
        "checkpoint",
        <Mark key="restored" what="Restored" at={event.created}>
          {" "}
          <code>{visible(event.data.checkpointID)}</code> {filesText(event.data.filesChanged)}
        </Mark>
      ]
    case "session.next.shell.closed":
      return [
        "closed",
        <Mark key="closed" what="Closed" at={event.created}>
          {" "}
          {reasonText(event.data.reason)}
        </Mark>
      ]
    default:
      return event satisfies never
  }
}

const rowOf = (entry: Entry, pattern: RegExp | undefined): VNode => {
  const [kind, content] = contentOf(entry, pattern)
  return (
    <li key={entry.event.position} class={`entry ${kind}`}>
      {content}
    </li>
  )
}

const markFound = (element: Element, pattern: RegExp | undefined): void => {
  // Older browsers have no highlights, and show the same commands without marks.
  if (!("highlights" in CSS)) return
  CSS.highlights.delete("found")
  if (pattern === undefined) return
  const everywhere = new RegExp(pattern.source, `${pattern.flags}g`)
  const found = new Highlight()
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
  while (walker.nextNode() !== null && found.size < mostMarked) {
    const node = walker.currentNode
    for (const { 0: text, index } of (node.nodeValue ?? "").matchAll(everywhere)) {
      const [startContainer, endContainer, startOffset] = [node, node, index]
      found.add(new StaticRange({ startContainer, startOffset, endContainer, endOffset: index + text.length }))
      if (found.size >= mostMarked) break
    }
  }
  CSS.highlights.set("found", found)
}

/** Where the window begins. An entry that was dropped is before the first one. */
const startOf = (entries: ReadonlyArray<Entry>, top: Entry | undefined): number => {
  const last = Math.max(0, entries.length - mostShown)
  if (top === undefined) return last
  const found = entries.findIndex(({ event }) => event.position >= top.event.position)
  return found < 0 ? last : found
}

/** What keys do in the list. */
export interface EntryKeys {
  toEnd: () => void
  toStart: () => void
}

export interface ShellEntriesProps {
  /** They change in place: another `version` draws them again. */
  readonly entries: ReadonlyArray<Entry>
  readonly version: number
  readonly pattern: RegExp | undefined
  /** What is shown without entries. */
  readonly empty: string
  readonly dropped: number
  readonly keys: EntryKeys
}

/** The entries of one shell and one filter: another shell has a list of its own. */
export const ShellEntries = ({ dropped, empty, entries, keys, pattern }: ShellEntriesProps) => {
  const scroller = useRef<HTMLDivElement>(null)
  const list = useRef<HTMLOListElement>(null)
  /** The first entry of the window; undefined: the window ends with the newest entry, and the list follows it. */
  const [top, setTop] = useState<Entry | undefined>(undefined)
  const isFollowing = top === undefined
  const follows = useRef(true)
  follows.current = isFollowing
  const seen = useRef<Entry | undefined>(undefined)
  /** What stays in its place when the window moves. */
  const kept = useRef<{ readonly node: Element; readonly at: number } | undefined>(undefined)
  const rows = useRef(new WeakMap<Entry, VNode>())
  const start = startOf(entries, top)
  const shown = entries.slice(start, start + mostShown)
  const isLast = start + shown.length >= entries.length

  const stay = () => {
    const element = scroller.current
    if (element !== null && follows.current) element.scrollTop = element.scrollHeight
  }
  const mark = () => {
    if (list.current !== null) markFound(list.current, pattern)
  }
  useLayoutEffect(() => {
    stay()
    mark()
    const [element, place] = [scroller.current, kept.current]
    kept.current = undefined
    if (element !== null && place?.node.isConnected === true) {
      element.scrollTop += place.node.getBoundingClientRect().top - place.at
    }
  })
  useEffect(() => {
    const observer = new ResizeObserver(stay)
    if (scroller.current !== null) observer.observe(scroller.current)
    return () => observer.disconnect()
  }, [])

  const move = (by: number) => {
    const next = Math.min(Math.max(0, start + by), Math.max(0, entries.length - 1))
    const node = list.current?.children[by < 0 ? 0 : next - start]
    if (node !== undefined) kept.current = { node, at: node.getBoundingClientRect().top }
    setTop(entries[next])
  }
  keys.toEnd = () => setTop(undefined)
  keys.toStart = () => {
    setTop(entries[0])
    requestAnimationFrame(() => scroller.current?.scrollTo({ top: 0 }))
  }
  const scrolled = () => {
    const element = scroller.current
    if (element === null) return
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < near && isLast
    // What the reader looks at stays, also when entries are added.
    if (isAtEnd !== isFollowing) setTop(isAtEnd ? undefined : entries[start])
  }
  const rowFor = (entry: Entry): VNode => {
    const known = rows.current.get(entry) ?? rowOf(entry, pattern)
    rows.current.set(entry, known)
    return known
  }
  if (isFollowing) seen.current = entries.at(-1)
  const seenAt = seen.current?.event.position ?? 0
  const unseen = entries.length - entries.findLastIndex(({ event }) => event.position <= seenAt) - 1
  return (
    <>
      <div
        id="scroller"
        class="scroller"
        ref={scroller}
        tabIndex={0}
        aria-label="Commands"
        role="region"
        onScroll={scrolled}
      >
        {entries.length === 0 ? <p class="nothing">{empty}</p> : null}
        {dropped === 0 ? null : <p class="dropped">{droppedText(dropped)}</p>}
        <button type="button" class="beyond" hidden={start === 0} onClick={() => move(-step)}>
          Show earlier commands
        </button>
        {/* After a click has unfolded a text. */}
        <ol id="entries" class="entries" ref={list} onClick={() => requestAnimationFrame(mark)}>
          {shown.map(rowFor)}
        </ol>
        <button type="button" class="beyond" hidden={isLast} onClick={() => move(step)}>
          Show later commands
        </button>
      </div>
      <button
        type="button"
        class="newest"
        hidden={isFollowing}
        onClick={() => {
          setTop(undefined)
          scroller.current?.focus()
        }}
      >
        {unseen === 0 ? "Newest ↓" : `${unseen} new ↓`}
      </button>
    </>
  )
}

/** How many commands a shell ran. */
export const commandsText = (commands: number): string => countText(commands, "command")
