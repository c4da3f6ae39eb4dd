/** A list of which only the visible part is in the document; rows are measured. Spec: IP-17 in specs/http.md. */
import {
  elementScroll,
  measureElement,
  observeElementOffset,
  observeElementRect,
  Virtualizer
} from "@tanstack/virtual-core"
import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks"

export interface VirtualListProps {
  readonly count: number
  readonly label: string
  /** Pixels of a row that was not measured yet. */
  readonly estimate: number
  readonly keyOf: (index: number) => string | number
  readonly row: (index: number) => ComponentChildren
  /** Rows have this height, and are not measured. */
  readonly fixed?: boolean
  /** Stays at the end while it is there. */
  readonly stick?: boolean
  /** A row to show; with it, the list does not begin at its end. */
  readonly at?: number | undefined
  /** The beginning is near. */
  readonly atStart?: (() => void) | undefined
  readonly class?: string
}

/** Pixels from an edge that count as being there. */
const near = 80

/** The virtualizer of a scrolling element; draws again when the visible part changes. */
const useVirtualizer = (
  { count, estimate, keyOf }: VirtualListProps,
  scroller: { readonly current: HTMLDivElement | null }
) => {
  const [, draw] = useReducer((version: number) => version + 1, 0)
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => estimate,
    getItemKey: keyOf,
    overscan: 8,
    observeElementOffset,
    observeElementRect,
    scrollToFn: elementScroll,
    measureElement,
    onChange: () => draw(undefined)
  }
  const [virtualizer] = useState(() => new Virtualizer<HTMLDivElement, HTMLLIElement>(options))
  virtualizer.setOptions(options)
  useEffect(() => virtualizer._didMount(), [virtualizer])
  useLayoutEffect(() => virtualizer._willUpdate())
  return virtualizer
}

export const VirtualList = (props: VirtualListProps) => {
  const { at, atStart, count, estimate, fixed = false, keyOf, label, row, stick = false } = props
  const scroller = useRef<HTMLDivElement>(null)
  const virtualizer = useVirtualizer(props, scroller)
  // Whether the end is in view, before rows are added, and where the list stood then.
  const isAtEnd = useRef(stick && at === undefined)
  const end = useRef(0)
  const size = virtualizer.getTotalSize()
  useLayoutEffect(() => {
    const element = scroller.current
    if (!stick || !isAtEnd.current || element === null) return
    // The reader scrolled away, and the event of it has not come yet. Less height moves the list too, to its new end.
    const stood = Math.min(end.current, element.scrollHeight - element.clientHeight)
    if (element.scrollTop < stood - near) return void (isAtEnd.current = false)
    // Not by the virtualizer, which would go on to scroll for some frames, against a reader who scrolls away.
    element.scrollTop = size
    end.current = element.scrollTop
  }, [count, size, stick, virtualizer.scrollRect?.height])
  useEffect(() => {
    if (at === undefined || at < 0 || at >= count) return
    isAtEnd.current = false
    virtualizer.scrollToIndex(at, { align: "center" })
  }, [at, count > (at ?? 0)])
  // Rows that come before the first one keep the others in place.
  const first = useRef<{ readonly key: string | number; readonly count: number } | undefined>(undefined)
  useLayoutEffect(() => {
    const [before, key] = [first.current, count > 0 ? keyOf(0) : undefined]
    if (before !== undefined && key !== undefined && key !== before.key && count > before.count && !fixed) {
      const element = scroller.current
      if (element !== null) element.scrollTop += (count - before.count) * estimate
    }
    first.current = key === undefined ? undefined : { key, count }
  }, [count])
  const lookForStart = () => {
    const element = scroller.current
    if (element !== null && element.clientHeight > 0 && element.scrollTop < near * 4) atStart?.()
  }
  // No scroll event comes from a list that is shorter than its place, or that is at its start already.
  useEffect(lookForStart)
  const scrolled = () => {
    const element = scroller.current
    if (element === null) return
    isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < near
    lookForStart()
  }
  return (
    <div
      ref={scroller}
      class={`scroller ${props.class ?? ""}`}
      onScroll={scrolled}
      tabIndex={0}
      role="region"
      aria-label={label}
    >
      <ol class="virtual" style={{ height: `${size}px` }}>
        {virtualizer.getVirtualItems().map(({ index, key, start }) => (
          <li
            key={key}
            data-index={index}
            ref={fixed ? null : (element) => virtualizer.measureElement(element)}
            aria-setsize={count}
            aria-posinset={index + 1}
            style={{ transform: `translateY(${start}px)`, height: fixed ? `${estimate}px` : undefined }}
          >
            {row(index)}
          </li>
        ))}
      </ol>
    </div>
  )
}
