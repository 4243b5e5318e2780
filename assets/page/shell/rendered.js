// Waiting for what Gradio has yet to draw.

/**
 * The element of a selector, as soon as it is there.
 *
 * @param {string} selector
 * @returns {Promise<any>}
 */
export function rendered(selector) {
  const found = document.querySelector(selector);
  if (found) return Promise.resolve(found);
  return new Promise((resolve) => {
    const watch = new MutationObserver(() => {
      const element = document.querySelector(selector);
      if (!element) return;
      watch.disconnect();
      resolve(element);
    });
    watch.observe(document.documentElement, { childList: true, subtree: true });
  });
}
