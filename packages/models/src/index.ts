/**
 * The public exports of `@daybook/models`: the catalogue, the resolver, the profiles of servers, and the offline
 * model.
 *
 * @module @daybook/models
 */
export * as Catalog from "./Catalog.ts"
export * as Listing from "./Listing.ts"
export * as Models from "./Models.ts"
export * as OfflineModel from "./OfflineModel.ts"
export * as Policy from "./Policy.ts"
export * as Profiles from "./Profiles.ts"
export type { Profile } from "./Profiles.ts"
export * as Servers from "./Servers.ts"
