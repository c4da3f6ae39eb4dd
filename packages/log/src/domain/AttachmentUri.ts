/** The URI that replaces the data of a prompt's attachment, so that it is not stored twice. Spec: PX-13. */

export const attachmentUri = (index: number): string => `attachment:${index}`

/** The index of the attachment; undefined for any other URI. */
export const attachmentIndex = (uri: string): number | undefined => {
  const [, index] = /^attachment:(\d{1,9})$/.exec(uri) ?? []
  return index === undefined ? undefined : Number(index)
}
