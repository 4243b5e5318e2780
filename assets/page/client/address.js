// The studio's addresses, including behind a proxy that serves it under a path prefix.

/**
 * The full address of a path of the studio, such as "/v1/takes".
 *
 * @param {string} path
 */
export function address(path) {
  const root = (window.gradio_config?.root ?? window.location.origin).replace(/\/$/, "");
  const url = new URL(root, window.location.href);
  return `${window.location.origin}${url.pathname.replace(/\/$/, "")}${path}`;
}

/**
 * The page's own address of an item in an area, such as ("history", "take_1").
 *
 * @param {string} area
 * @param {string} item
 */
export const linkTo = (area, item) => `${address("/")}#${area}/${encodeURIComponent(item)}`;
