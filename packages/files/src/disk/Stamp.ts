/** Describes the state of a file without its content: its stamp, and its checksum. */

/** Detects a change of a file without reading it. */
export interface Stamp {
  /** Inode, size and change time: a change of content, name or permissions changes it. */
  readonly text: string
  readonly size: number
  readonly mode: number
  readonly gid: number
}

/** Size and checksum of a content. */
export interface Sum {
  readonly size: number
  readonly crc: number
}
