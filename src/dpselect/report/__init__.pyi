from .facts import search_facts as search_facts
from .model_card import render_model_card as render_model_card
from .page import render_page as render_page
